"""The soak: steady publishing while endpoints are healthy, slow, dead, flapping or hostile. Does the hub stay flat?"""
