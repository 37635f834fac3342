"""Samples that a run prints: rows of its data and texts of its model, which may quote an error.

A trainer prints a row of the data set before it starts, and texts that the model generates at the
end; a server logs its requests. A traceback in such a text happened elsewhere. A sample is
recognized by what encloses it: tokens of a chat template, the trainer's own labels, a quoted column
of the data. Text without any of these cannot be distinguished from output.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dsdoctor.lazy_regex import lazy
from dsdoctor.logs.errors import Error
from dsdoctor.logs.hits import Hit, Scan
from dsdoctor.logs.marks import FATAL_MARKS

#: Tokens that begin and end a turn in the chat templates of Qwen, Llama 2 and 3, Mistral, Gemma,
#: Phi, Zephyr and Vicuna, and the tags of reasoning models.
_OPENS = lazy(
    r"<\|(?:im_start|start_header_id|begin_of_text|user|assistant|system|start)\|>|\[INST\]"
    r"|<start_of_turn>|<think>"
)
_CLOSES = lazy(
    r"<\|(?:im_end|eot_id|end_of_text|endoftext|end|return)\|>|\[/INST\]|<end_of_turn>|</think>"
    r"|</s>"
)
#: LLaMA-Factory 0.6-0.9, src/llamafactory/data (print_data_example): each label on its own line,
#: the text below it.
_ROW = lazy(r"(?:\w{1,20}_)?inputs:$")
_ROW_ENDS = lazy(r"(?:\w{1,20}_)?label_ids:$")
#: A column of a data set and the beginning of its text, as Python and JSON write them.
_COLUMN = lazy(
    r"['\"](?:(?:prompt|completion|instruction|question|answer|chosen|rejected|generated_text"
    r"|solution)['\"]: ?['\"]|role['\"]: ?['\"](?:user|assistant|system)['\"])"
)
#: What an evaluation prints before a prompt, or an expected or generated text.
_LABEL = lazy(
    r"\W{0,4}(?:Prompt|Completion|Predicted|Prediction|Reference|Hypothesis|Ground [Tt]ruth"
    r"|Generated(?: [Tt]ext| [Oo]utput)?|Target)(?: ?\d{1,6})?: "
)
_FAILS = lazy(r"Traceback \(|Error\b|Exception\b|[Ee]rror:|[Tt]imeout")
#: Most lines of one sample.
LONGEST = 200


def take_out_samples(scan: Scan) -> None:
    """Removes what only a sample quotes."""
    quoted = set(_quoted(scan.tail))
    last = max((scan.marks[name][0] for name in FATAL_MARKS if name in scan.marks), default=0)
    quoted = {line for line in quoted if line > last}  # before it, ranks may write into a sample

    def is_quoted(item: Hit | Error) -> bool:
        return item.line in quoted or is_sample(item.text)

    scan.hits = [hit for hit in scan.hits if not is_quoted(hit)]
    scan.errors = [error for error in scan.errors if not is_quoted(error)]
    scan.tail = [row for row in scan.tail if row[0] not in quoted and not is_sample(row[1])]


def is_sample(text: str) -> bool:
    r"""Whether a line quotes a failure: it comes after the beginning of a sample.

    >>> is_sample("prompt: '<|im_start|>user\\\\nWhy CUDA error: out of memory?")
    True
    >>> is_sample("{'message': 'CUDA error', 'input': 'x'}")
    False
    """
    fails = _FAILS.search(text)
    begins = (_COLUMN.search(text), _OPENS.search(text), _LABEL.match(text))
    places = [found.end() for found in begins if found is not None]
    return fails is not None and bool(places) and min(places) <= fails.start()


def _quoted(rows: Sequence[tuple[int, str]]) -> Iterator[int]:
    """Numbers of the lines within samples of several lines."""
    for opens, closes in ((_OPENS, _CLOSES), (_ROW, _ROW_ENDS)):
        begun: int | None = None
        for at, (_, text) in enumerate(rows):
            if begun is not None and closes.search(text):
                if at - begun <= LONGEST:
                    yield from (rows[one][0] for one in range(begun, at + 1))
                begun = None
            if begun is None and opens.search(text):
                begun = at
