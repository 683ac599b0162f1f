"""The list of doors, in the order in which they are asked for a path. A new door is one more line here."""

from __future__ import annotations

from collections.abc import Sequence

from tidings.doors.cloudevents.door import DOOR as CLOUDEVENTS
from tidings.doors.door import Door
from tidings.doors.feeds.door import DOOR as FEEDS
from tidings.doors.hermes.door import DOOR as HERMES
from tidings.doors.horizon.door import DOOR as HORIZON
from tidings.doors.native.door import DOOR as NATIVE
from tidings.doors.vng.door import DOOR as VNG

DOORS: Sequence[Door] = (FEEDS, HORIZON, HERMES, VNG, CLOUDEVENTS, NATIVE)
