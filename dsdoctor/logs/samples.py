"""Samples that a run prints: rows of its data and texts of its model, which may quote an error.

A trainer prints a row of the data set before it starts, and texts that the model generates at the
end; a server logs its requests. A traceback in such a text happened elsewhere. A sample is
recognized by what encloses it: tokens of a chat template, the trainer's own labels, a quoted column
of the data. Text without any of these cannot be distinguished from output.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dsdoctor.lazy_regex import lazy
from dsdoctor.logs import reader
from dsdoctor.logs.errors import Error
from dsdoctor.logs.hits import Hit, Scan
from dsdoctor.logs.marks import FATAL_MARKS
from dsdoctor.logs.prefixes import strip_prefixes

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
    r"|Generated(?: [Tt]ext| [Oo]utput)?|Target|prompt|completion|response)(?: ?\d{1,6})?: "
    # verl 0.2-0.9 workers/reward_manager
    r"|\[(?:prompt|response|ground_truth)\] "
)
#: Who speaks in a conversation, and who answers, before what they say.
_ASKS = lazy(r"\W{0,4}(?:[Uu]ser|USER|[Hh]uman|HUMAN|Q(?:uestion)?|用户|问)\W{0,2} ?[:：] ?\S")
_ANSWERS = lazy(
    r"\W{0,4}(?:[Aa]ssistant|ASSISTANT|AI|[Bb]ot|A(?:nswer)?|助手|答)\W{0,2} ?[:：] ?\S"
)
#: The same in a whole log: a quick look, so that few logs are read twice.
_ASKED = lazy(r"\b(?:[Uu]ser|USER|[Hh]uman|HUMAN|Q(?:uestion)?)\W{0,2} ?:|用户|问".encode())
_ANSWERED = lazy(r"\b(?:[Aa]ssistant|ASSISTANT|AI|[Bb]ot|A(?:nswer)?)\W{0,2} ?:|助手|答".encode())
_FAILS = lazy(
    r"Traceback \(|Error\b|Exception\b|[Ee]rror\b|[Tt]imeout|[Tt]imed out|[Oo]ut of memory|OOM\b"
    r"|[Oo]om|[Kk]illed|[Ss]egmentation fault|core dumped|No space left|SIG[A-Z]{3,5}\b|[Aa]borted"
    r"|No module named|[Ff]ailed|ncclUnh\w+"
)
#: Most lines of one sample, of one turn of a conversation, and characters of a line that are read.
LONGEST, LONGEST_TURN, MOST = 200, 60, 200


def take_out_samples(scan: Scan, data: bytes) -> None:
    """Removes what only a sample quotes.

    Args:
        scan: the result for the log; it is changed.
        data: the whole log; empty if it is too long, so only its last lines are examined.
    """
    talk = set(_conversations(_rows(scan, data)))
    scan.marks = {
        name: row
        for name, row in scan.marks.items()
        if name not in FATAL_MARKS or not (row[0] in talk or is_sample(row[1]))
    }
    quoted = {*talk, *_quoted(scan.tail)}
    last = max((scan.marks[name][0] for name in FATAL_MARKS if name in scan.marks), default=0)
    quoted = {line for line in quoted if line > last}  # before it, ranks may write into a sample

    def is_quoted(item: Hit | Error) -> bool:
        return item.line in quoted or is_sample(item.text)

    scan.hits = [hit for hit in scan.hits if not is_quoted(hit)]
    scan.errors = [error for error in scan.errors if not is_quoted(error)]
    tail = [row for row in scan.tail if row[0] not in quoted and not is_sample(row[1])]
    scan.tail = tail or [(number, "") for number, _ in scan.tail[-1:]]  # the log is not empty


def _rows(scan: Scan, data: bytes) -> Sequence[tuple[int, str]]:
    """The lines in which a conversation may be, with their numbers."""
    if not (_ASKED.search(data) and _ANSWERED.search(data)):
        return scan.tail
    lines = (reader.decode(line[:MOST]) for line in data.split(b"\n"))
    return [
        (number, line if _speaks(line) else strip_prefixes(line)[0])  # a name looks like a prefix
        for number, line in enumerate(lines, 1)
    ]


def _speaks(line: str) -> bool:
    return (_ASKS.match(line) or _ANSWERS.match(line)) is not None


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


def _conversations(rows: Sequence[tuple[int, str]]) -> Iterator[int]:
    """Numbers of the lines from a question to the last answer that follows, turn by turn.

    What fails below the last answer is output: nobody has spoken since.
    """
    asked: int | None = None
    answered = spoke = 0
    for at, (_, text) in enumerate(rows):
        asks, answers = _ASKS.match(text), _ANSWERS.match(text)
        if not (asks or answers):
            continue
        if asked is not None and at - spoke > LONGEST_TURN:
            yield from (rows[one][0] for one in range(asked, answered + 1))
            asked = None
        if asked is None and asks:
            asked, answered = at, at - 1
        if asked is not None and answers:
            answered = at
        spoke = at
    if asked is not None:
        yield from (rows[one][0] for one in range(asked, answered + 1))
