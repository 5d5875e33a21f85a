"""Property tests repeat their examples; HYPOTHESIS_PROFILE=search draws new ones."""

from __future__ import annotations

import os

from hypothesis import settings

# No deadline: the first example pays for imports.
settings.register_profile("repeat", deadline=None, derandomize=True)
settings.register_profile("search", deadline=None, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeat"))
