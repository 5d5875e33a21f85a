"""For those who write an adapter: the contract every adapter keeps, as tests to inherit."""
