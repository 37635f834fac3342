"""The shape of a model: enough of it to count parameters exactly and to size activations."""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True, kw_only=True)
class ModelShape:
    """A dense decoder-only transformer.

    Attributes:
        name: what the user called it.
        family: `model_type` of the Hugging Face config (`gpt2`, `llama`, …) or `generic`.
        layers: transformer blocks.
        hidden: width of the residual stream.
        heads: query heads.
        kv_heads: key and value heads (fewer than heads = grouped-query attention).
        head_dim: width of one head.
        intermediate: inner width of the MLP.
        vocab: rows of the embedding.
        positions: rows of the learned position embedding, 0 with rotary embeddings.
        max_length: longest sequence that the model was made for.
        tied: output layer and embedding are one matrix.
        gated: the MLP has a gate (three matrices instead of two).
        qkv_bias, out_bias, mlp_bias: which linear layers have a bias.
        norm_bias: LayerNorm (weight and bias) instead of RMSNorm (weight).
        norms_per_layer: norms in one block.
        qk_norm: queries and keys are normalised per head.
        stated_parameters: the count that the user gave, where only a size was given.
    """

    name: str
    layers: int
    hidden: int
    heads: int
    vocab: int
    intermediate: int
    kv_heads: int
    head_dim: int
    family: str = "generic"
    positions: int = 0
    max_length: int = 2048
    tied: bool = False
    gated: bool = True
    qkv_bias: bool = False
    out_bias: bool = False
    mlp_bias: bool = False
    norm_bias: bool = False
    norms_per_layer: int = 2
    qk_norm: bool = False
    stated_parameters: int | None = None

    @property
    def query_width(self) -> int:
        """Width of all query heads together."""
        return self.heads * self.head_dim

    @property
    def kv_width(self) -> int:
        """Width of all key (or value) heads together."""
        return self.kv_heads * self.head_dim

    @property
    def norm_parameters(self) -> int:
        """Parameters of one norm over the hidden width."""
        return self.hidden * (2 if self.norm_bias else 1)

    @property
    def layer_parameters(self) -> int:
        """Parameters of one block."""
        matrices = self.hidden * (2 * self.query_width + 2 * self.kv_width)
        matrices += (3 if self.gated else 2) * self.hidden * self.intermediate
        biases = 0
        if self.qkv_bias:
            biases += self.query_width + 2 * self.kv_width
        if self.out_bias:
            biases += self.hidden
        if self.mlp_bias:
            biases += self.hidden + self.intermediate * (2 if self.gated else 1)
        norms = self.norms_per_layer * self.norm_parameters
        norms += 2 * self.head_dim if self.qk_norm else 0
        return matrices + biases + norms

    @property
    def embedding_parameters(self) -> int:
        """Parameters of the token embedding."""
        return self.vocab * self.hidden

    @property
    def parameters(self) -> int:
        """All parameters; a tied output layer counts once."""
        if self.stated_parameters is not None:
            return self.stated_parameters
        outer = self.embedding_parameters * (1 if self.tied else 2)
        outer += self.positions * self.hidden
        return outer + self.layers * self.layer_parameters + self.norm_parameters

    @property
    def largest_module(self) -> int:
        """Parameters of the largest single module: what ZeRO-3 must gather at once at least."""
        return max(self.embedding_parameters, self.hidden * self.intermediate)

    def lora_parameters(self, rank: int) -> int:
        """Trainable parameters of LoRA of this rank on all linear layers of the blocks.

        Each adapted matrix of shape (out, in) gets rank · (in + out) parameters (arXiv:2106.09685,
        section 4.1).
        """
        pairs = [
            (self.hidden, self.query_width),
            (self.hidden, self.kv_width),
            (self.hidden, self.kv_width),
            (self.query_width, self.hidden),
            *[(self.hidden, self.intermediate)] * (3 if self.gated else 2),
        ]
        return self.layers * rank * sum(wide + high for wide, high in pairs)
