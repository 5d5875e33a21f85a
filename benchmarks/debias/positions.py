"""Position-attention calibration, a rival: attention shared evenly over a text while it is encoded.

Schuhmacher et al. 2026 (arXiv 2601.16934) and Michail et al. 2026 (arXiv 2606.02737) cut a text
into baskets of so many tokens and give each basket the same total attention, in the upper layers,
half of the way (``strength`` .5). The model pools the mean of its tokens, so every token attends
so. A text that fits into one basket keeps its vector. Nothing is fitted, no weight changes.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import torch
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import AttentionMaskInterface, sdpa_mask

from rag_sourcebias.neural.loading import SentenceEncoder

BASKET, STRENGTH = 128, 0.5  # Michail et al. use them for every model, with half of the layers
NAME = "even_baskets"


def attend(
    module: Any, query: Any, key: Any, value: Any, mask: Any, **given: Any
) -> tuple[torch.Tensor, None]:
    """Blend attention with the mean of what each basket alone would be attended to.

    Attention within a basket, scaled to a total of 1, is the softmax over that basket.
    """
    whole, _ = sdpa_attention_forward(module, query, key, value, mask, **given)
    strength = getattr(module, "calibrated", 0.0)
    if not strength:
        return whole, None
    if mask is None:
        mask = torch.ones((len(key), 1, 1, key.shape[2]), dtype=torch.bool, device=key.device)
    total, n_used = torch.zeros_like(whole), torch.zeros_like(whole[..., :1])
    for start in range(0, key.shape[2], BASKET):
        part = slice(start, start + BASKET)
        allowed = mask[..., part]
        used = allowed[:, 0].any(-1)[..., None, None]  # texts that reach into this basket
        found, _ = sdpa_attention_forward(
            module, query, key[:, :, part], value[:, :, part], allowed, **given
        )
        total += torch.where(used, found, 0)
        n_used += used
    return whole + strength * (total / n_used - whole), None


class PositionCalibrated(SentenceEncoder):
    """The encoder with attention calibrated in the upper half of its layers."""

    def __init__(self, model: str, *, strength: float = STRENGTH, **given: Any) -> None:
        super().__init__(model, name="position calibration", **given)
        self.strength = strength

    @cached_property
    def fingerprint(self) -> str:
        return f"{super().fingerprint}:baskets of {BASKET}, strength {self.strength:g}"

    @cached_property
    def _model(self) -> Any:
        model = super()._model
        AttentionInterface.register(NAME, attend)
        AttentionMaskInterface.register(NAME, sdpa_mask)
        inner = model.transformers_model
        inner.set_attn_implementation(NAME)
        layers = inner.encoder.layer
        for layer in layers[len(layers) // 2 :]:
            layer.attention.self.calibrated = self.strength
        return model
