"""The shape of a model: enough of it to count parameters exactly and to size activations."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Iterator


@dataclasses.dataclass(frozen=True, kw_only=True)
class Latent:
    """Multi-head latent attention (DeepSeek): what queries, keys and values are made from.

    Attributes:
        query: rank of the queries, 0 = they are made from the residual stream.
        key: rank that keys and values share.
        rotary: width of the part of a key that carries positions, one for all heads.
        value: width of a head's values.
    """

    query: int
    key: int
    rotary: int
    value: int


@dataclasses.dataclass(frozen=True, kw_only=True)
class Tower:
    """Blocks that run before those of the model: a vision tower, or an encoder.

    Attributes:
        name: for the reader (`vision tower`, `encoder`).
        blocks: their shape; `family` is a key of `traits.TRAITS`, `layers` those whose output is
            used.
        source: `images`, `text` or `recording`: what its tokens are counted by.
        tokens: tokens of it for each token of an image or of the text, or for each recording.
        unit: tokens that attend to each other, 0 = all of a sequence.
        outer: bytes that are kept for each of its tokens outside the blocks.
    """

    name: str
    blocks: ModelShape
    source: str
    tokens: float = 1.0
    unit: int = 0
    outer: int = 0


@dataclasses.dataclass(frozen=True, kw_only=True)
class ModelShape:
    """A transformer, dense or with experts; `towers` run before its decoder.

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
        window: tokens that each token attends to at most in every layer, 0 = all before it.
        tied: output layer and embedding are one matrix.
        outputs: values that the output layer computes for each token, None = one per vocabulary
            entry; a classifier has as many as classes, a class without an output layer none.
        gated: the MLP has a gate (three matrices instead of two).
        qkv_bias, out_bias, mlp_bias: which linear layers have a bias.
        norm_bias: LayerNorm (weight and bias) instead of RMSNorm (weight).
        norms_per_layer: norms in one block.
        qk_norm: queries and keys are normalized per head.
        experts: feed-forward networks in each mixture-of-experts layer, 0 = a dense model.
        active_experts: experts that each token goes through.
        expert_width: inner width of one expert.
        shared_width: inner width of the experts that every token goes through, 0 = none.
        dense_layers: first layers that have a plain MLP instead of experts.
        stated_parameters: the count that the user gave, where only a size was given.
        sizes: elements of every tensor, where they are listed.
        modules: elements of the tensors of each module that has any, in the order of the forward
            pass, where they are listed; a tied tensor is in both of its modules.
        stacked: those of `modules` in which a tensor holds all experts.
        shared: those of `modules` that have the tensors of an earlier one, with that one.
        built: the sizes were read from the model itself, not from its config.
        adapted: parameters of its adapters for each unit of their rank, where they were counted.
        router_fp32: the router works in fp32, on a copy of its input.
        latent: latent attention, None = keys and values of their own.
        mlp_tensors: tensors of the inner width that the MLP keeps, 0 = by `gated` and family.
        towers: what runs before the decoder, the last one first in the backward pass.
        image_tokens: tokens of one image of the usual size, 0 = the model takes none.
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
    window: int = 0
    tied: bool = False
    outputs: int | None = None
    gated: bool = True
    qkv_bias: bool = False
    out_bias: bool = False
    mlp_bias: bool = False
    norm_bias: bool = False
    norms_per_layer: int = 2
    qk_norm: bool = False
    experts: int = 0
    active_experts: int = 0
    expert_width: int = 0
    shared_width: int = 0
    dense_layers: int = 0
    stated_parameters: int | None = None
    sizes: tuple[int, ...] = ()
    modules: tuple[tuple[int, ...], ...] = ()
    stacked: tuple[int, ...] = ()
    shared: tuple[tuple[int, int], ...] = ()
    built: bool = False
    adapted: int | None = None
    router_fp32: bool = False
    latent: Latent | None = None
    mlp_tensors: int = 0
    towers: tuple[Tower, ...] = ()
    image_tokens: int = 0

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
        """Parameters of one block with a plain MLP."""
        matrices = self.hidden * (2 * self.query_width + 2 * self.kv_width)
        matrices += (3 if self.gated else 2) * self.hidden * self.intermediate
        return matrices + self._small_parameters

    @property
    def expert_layer_parameters(self) -> int:
        """Parameters of one block with experts and their router."""
        matrices = self.hidden * (2 * self.query_width + 2 * self.kv_width)
        inner = self.experts * self.expert_width + self.shared_width
        matrices += 3 * self.hidden * inner + self.experts * self.hidden
        return matrices + self._small_parameters

    @property
    def expert_layers(self) -> int:
        """Blocks with experts."""
        return self.layers - self.dense_layers if self.experts else 0

    @property
    def block_parameters(self) -> int:
        """Parameters of all blocks."""
        mixed = self.expert_layers
        plain = (self.layers - mixed) * self.layer_parameters
        return plain + (mixed * self.expert_layer_parameters if mixed else 0)

    @property
    def _small_parameters(self) -> int:
        """Biases and norms of one block."""
        biases = 0
        if self.qkv_bias:
            biases += self.query_width + 2 * self.kv_width
        if self.out_bias:
            biases += self.hidden
        if self.mlp_bias:
            biases += self.hidden + self.intermediate * (2 if self.gated else 1)
        norms = self.norms_per_layer * self.norm_parameters
        norms += 2 * self.head_dim if self.qk_norm else 0
        return biases + norms

    @property
    def embedding_parameters(self) -> int:
        """Parameters of the token embedding."""
        return self.vocab * self.hidden

    @property
    def logits(self) -> int:
        """Logits of a token."""
        return self.vocab if self.outputs is None else self.outputs

    @property
    def output_parameters(self) -> int:
        """Parameters of the output layer, 0 if it is the embedding."""
        return 0 if self.tied else self.logits * self.hidden

    @property
    def outer_parameters(self) -> int:
        """Parameters that are not in a matrix of a block: embedding, output layer, norms, biases.

        Of a model whose tensors are listed without their names: all but those of the blocks' usual
        matrices.
        """
        small = (self.layers * self._small_parameters) + self.norm_parameters
        outer = self.embedding_parameters + self.output_parameters + self.positions * self.hidden
        return min(self.parameters, outer + small)

    @property
    def parameters(self) -> int:
        """All parameters; a tied output layer counts once."""
        if self.stated_parameters is not None:
            return self.stated_parameters
        if self.sizes:
            return sum(self.sizes)
        outer = self.embedding_parameters + self.output_parameters
        outer += self.positions * self.hidden
        return outer + self.block_parameters + self.norm_parameters

    @property
    def largest_module(self) -> int:
        """Parameters of the largest single tensor: what ZeRO-3 must gather at once at least.

        transformers 5 keeps the experts of a layer in one tensor; earlier releases one by one.
        """
        if self.sizes:
            return max(self.sizes)
        return max(self.embedding_parameters, self.largest_matrix)

    @property
    def largest_matrix(self) -> int:
        """Parameters of the largest matrix of a block."""
        experts = 2 * self.experts * self.expert_width if self.experts else 0
        return self.hidden * max(self.intermediate, experts, self.shared_width, self.query_width)

    def tensors(self) -> Iterator[int]:
        """Sizes of the trained tensors, roughly in the order in which an optimizer gets them."""
        if self.sizes:
            yield from self.sizes
            return
        yield self.embedding_parameters
        for layer in range(self.layers):
            yield from (self.hidden * self.query_width, self.hidden * self.kv_width) * 2
            if layer >= self.layers - self.expert_layers:
                yield 2 * self.experts * self.hidden * self.expert_width
                yield self.experts * self.hidden * self.expert_width
            else:
                yield from [self.hidden * self.intermediate] * (3 if self.gated else 2)
        if self.output_parameters:
            yield self.output_parameters

    @functools.lru_cache(maxsize=2048)  # noqa: B019  # a plan asks again for each setting that it tries
    def whole_gradients(
        self, world: int, made: int | None = None, bucket: int | None = None, *, own: bool = True
    ) -> int:
        """Elements of the gradients that a rank of ZeRO-1 or -2 keeps, the most of all ranks.

        Each tensor that lies in its partition, even partly, stays whole until the step. ZeRO-1
        also keeps those of other ranks, if they are too large for the bucket.

        Args:
            world: the ranks.
            made: elements that have their gradient, which come from the end of the model; ranks
                that have none of them do not count. None = all.
            bucket: of ZeRO-1, the elements of its bucket.
            own: those of its own partition count; with the optimizer on the host they do not.

        >>> ModelShape(name="x", layers=0, hidden=10, heads=1, vocab=8, intermediate=1, kv_heads=1,
        ...            head_dim=10).whole_gradients(4)
        80
        >>> ModelShape(name="x", layers=0, hidden=10, heads=1, vocab=8, intermediate=1, kv_heads=1,
        ...            head_dim=10, sizes=(80, 20, 20)).whole_gradients(4, made=20)
        40
        >>> ModelShape(name="x", layers=0, hidden=10, heads=1, vocab=8, intermediate=1, kv_heads=1,
        ...            head_dim=10, sizes=(20, 80, 20)).whole_gradients(12, bucket=50)
        100
        >>> ModelShape(name="x", layers=0, hidden=10, heads=1, vocab=8, intermediate=1, kv_heads=1,
        ...            head_dim=10, sizes=(20, 80, 20)).whole_gradients(1, bucket=50, own=False)
        0
        """
        sizes = list(self.tensors())
        total = sum(sizes)
        most = first = offset = 0
        untouched = total - (total if made is None else min(made, total))
        ends = itertools.accumulate(sizes)
        large = [
            size if bucket is not None and size > bucket and end - size >= untouched else 0
            for size, end in zip(sizes, ends, strict=True)
        ]
        large[0] = 0  # it comes last, and is counted when it is reduced
        before = [0, *itertools.accumulate(large)]
        for rank in range(world):
            end = (rank + 1) * total // world
            place, at = first, offset
            while place < len(sizes) and at < end:
                at += sizes[place]
                place += 1
            if end > untouched:
                others = before[-1] - (before[place] - before[first])
                most = max(most, others + (at - offset if own else 0))
            else:
                most = max(most, before[-1])
            while first < place and offset + sizes[first] <= end:
                offset += sizes[first]
                first += 1
        if self.stated_parameters is not None:
            return most * self.stated_parameters // total
        return most

    def lora_parameters(self, rank: int) -> int:
        """Trainable parameters of LoRA of this rank on all linear layers of the blocks.

        Each adapted matrix of shape (out, in) gets rank · (in + out) parameters (arXiv:2106.09685,
        section 4.1).
        """
        if self.adapted is not None:
            return rank * self.adapted
        pairs = [
            (self.hidden, self.query_width),
            (self.hidden, self.kv_width),
            (self.hidden, self.kv_width),
            (self.query_width, self.hidden),
            *[(self.hidden, self.intermediate)] * (3 if self.gated else 2),
        ]
        return self.layers * rank * sum(wide + high for wide, high in pairs)
