"""For those who write an adapter: the contract every adapter keeps, as tests to inherit."""

import pytest

# So that a failure of the kit shows the values it compared.
pytest.register_assert_rewrite(
    *(
        f"{__name__}.{part}"
        for part in ("counting", "encoders", "recording", "robustness", "tagging")
    )
)
