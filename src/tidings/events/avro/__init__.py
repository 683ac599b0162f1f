"""Avro payloads: schemas that are read within bounds, binary that is checked and decoded, conversion from and to JSON.

Pure. Knows nothing of topics; the registry, the intake, filters and doors use it. Only here is fastavro imported: by `decoding`,
which `schema` needs. `names` needs nothing, so that whoever only reads a registry loads no decoder.
"""
