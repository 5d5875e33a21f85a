from .beir import write_beir as write_beir
