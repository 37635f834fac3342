"""The tensors of a model, listed one by one: what makes a parameter count exact."""

from __future__ import annotations

import dataclasses

from dsdoctor.recommend.shape import ModelShape


@dataclasses.dataclass
class Tensors:
    """Elements of each tensor in the order of the model, and what adapters would add.

    Attributes:
        sizes: elements of each tensor.
        adapted: parameters of adapters on the linear layers, for each unit of their rank.
    """

    sizes: list[int] = dataclasses.field(default_factory=list)
    adapted: int = 0

    def add(self, *sizes: int) -> None:
        """Tensors that get no adapter: embeddings, norms, experts."""
        self.sizes += sizes

    def linear(self, wide: int, high: int, *, bias: bool = False) -> None:
        """A linear layer from one width to another."""
        self.sizes.append(wide * high)
        self.adapted += wide + high
        if bias:
            self.sizes.append(high)

    def norm(self, width: int, *, bias: bool = False) -> None:
        """RMSNorm, or LayerNorm with a bias."""
        self.sizes += [width, width] if bias else [width]

    def mlp(self, hidden: int, inner: int, *, gated: bool, bias: bool = False) -> None:
        """A feed-forward part."""
        for _ in range(2 if gated else 1):
            self.linear(hidden, inner, bias=bias)
        self.linear(inner, hidden, bias=bias)

    def put_into(self, shape: ModelShape) -> ModelShape:
        """The shape with these tensors."""
        return dataclasses.replace(shape, sizes=tuple(self.sizes), adapted=self.adapted)


def of_decoder(shape: ModelShape) -> Tensors:
    """The tensors of a dense decoder of one of the families with a gated MLP."""
    found = Tensors()
    found.add(shape.embedding_parameters)
    for _ in range(shape.layers):
        attention(found, shape)
        found.mlp(shape.hidden, shape.intermediate, gated=shape.gated, bias=shape.mlp_bias)
        for _ in range(shape.norms_per_layer):
            found.norm(shape.hidden, bias=shape.norm_bias)
    found.norm(shape.hidden, bias=shape.norm_bias)
    if shape.output_parameters:
        found.add(shape.output_parameters)
    return found


def attention(found: Tensors, shape: ModelShape) -> None:
    """Queries, keys, values and output, with the norms of queries and keys."""
    hidden, queries, keys = shape.hidden, shape.query_width, shape.kv_width
    for width in (queries, keys, keys):
        found.linear(hidden, width, bias=shape.qkv_bias)
    found.linear(queries, hidden, bias=shape.out_bias)
    if shape.qk_norm:
        found.add(shape.head_dim, shape.head_dim)
