"""What users test their apps with: a world in virtual time, one performer alone, posting windows."""

from kizami.testing.performing import run_performer
from kizami.testing.windows import assert_ticks_within
from kizami.testing.world import World

__all__ = ["World", "assert_ticks_within", "run_performer"]
