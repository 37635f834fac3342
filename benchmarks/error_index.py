"""What the error index knows, and how `diagnose` answers messages drawn from it.

    python benchmarks/error_index.py > benchmarks/error_index.md
    python benchmarks/error_index.py --draw 200 --seed 1 deepspeed-0.19.8.tar.gz
    python benchmarks/error_index.py --draw 100 --unanswered triton-3.9.0-*.whl flash_attn-*.tar.gz

The first prints how many messages of each product and release have an answer. The second draws
messages from releases at random, puts each below a minimal traceback with the file and function
that raise it, its places filled with plausible values, and prints what `diagnose` answers, for
somebody who judges it by reading. The third draws from messages for which no answer is written:
what `diagnose` says of them shows whether anything else claims to know their cause.

Over 400 lines because each draw that was judged is described here.
"""

from __future__ import annotations

import argparse
import collections
import random
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT / "tools")]

import harvest_messages as harvest  # found by the line above
from released import release_of

from dsdoctor import logs, packs
from dsdoctor.logs import error_index, error_lookup

#: Values for the places of a template.
VALUES = (
    "3", "8", "torch.float32", "model.layers.0.self_attn.q_proj.weight", "2", "cuda:0", "[1, 2]",
    "/data/ckpt/global_step100", "fp16", "4096", "None", "torch.Size([16, 32])",
)  # fmt: skip
#: The Python function that calls a product's C++, which has no frame of its own.
NATIVE_CALLERS = {
    "flash_attn": ("flash_attn/flash_attn_interface.py", "_flash_attn_forward"),
    "torch": ("torch/distributed/distributed_c10d.py", "all_reduce"),
}
#: What was judged by reading: the day, how it was drawn, and what came out.
DRAWN = """## Drawn samples

Messages drawn at random, judged by reading. "Raised by" counts those that are reported with who
raised them and no cause.

| day | drawn | right | raised by | false |
|---|---|---:|---:|---:|
| 2026-11-22 | A | | 98 | 2 |
| 2026-11-22 | B | 79 | 18 | 3 |
| 2026-11-22 | C | 5 | 55 | 0 |
| 2026-11-23 | D | 57 | | 3 |
| 2026-11-23 | E | 170 | 6 | 9 |
| 2026-11-23 | F | 57 | 1 | 2 |
| 2026-11-23 | G | 49 | 10 | 0 |
| 2026-11-23 | H | 95 | 2 | 1 |
| 2026-11-28 | I | 195 | 3 | 0 |
| 2026-11-28 | J | 95 | 3 | 0 |
| 2026-11-28 | K | 71 | 25 | 3 |
| 2026-11-28 | L | 59 | | 1 |
| 2026-11-28 | M | 104 | 5 | 0 |
| 2026-11-28 | N | 78 | | 2 |
| 2026-11-29 | O | 77 | | 3 |
| 2026-11-29 | P | 56 | | 4 |
| 2026-11-29 | Q | 56 | | 4 |
| 2026-11-29 | R | 38 | | 2 |
| 2026-11-29 | S | 35 | | 5 |
| 2026-11-29 | T | 43 | | 2 |
| 2026-11-29 | U | 38 | | 2 |
| 2026-11-29 | V | 39 | | 1 |
| 2026-11-29 | W | 56 | | 4 |
| 2026-11-29 | X | 24 | | 6 |
| 2026-11-29 | Y | 262 | 3 | 4 |
| 2026-11-30 | Z | 158 | 1 | 9 |
| 2026-11-30 | AA | 69 | | 0 |
| 2026-11-30 | AB | 164 | 1 | 16 |
| 2026-11-30 | AC | 75 | | 2 |
| 2026-11-30 | AD | 76 | | 1 |
| 2026-11-30 | AE | 175 | 1 | 10 |
| 2026-11-30 | AF | 96 | 1 | 3 |
| 2026-11-30 | AG | 191 | | 6 |
| 2026-11-30 | AH | 193 | | 5 |
| 2026-11-30 | AI | 95 | | 2 |
| 2026-11-30 | AJ | 184 | | 11 |
| 2026-11-30 | AK | 46 | | 2 |
| 2026-11-30 | AL | 91 | 1 | 6 |

A: `--draw 100 --seed 13 --unanswered` from bitsandbytes 0.50.2, triton 3.9.0 and flash_attn 2.8.3,
before any answer was written for them. The two false causes are patterns that fit other products'
words: `bf16-unsupported` for an atomic operation that a kernel asks for, and
`ds-config-unsupported-combination` for a dimension that the world size does not divide.
B: `--draw 100 --seed 14` from the same archives with their first answers: two answers asked for
the wrong thing, and one blamed the kernel for a check of Triton's own state. The answers were
corrected after each.
C: `--draw 60 --seed 15 --unanswered` from torch 2.13.0.
D: 60 of the messages that have an answer, judged with the condition that raises each: deepspeed
0.19.8 24 of 24 right, accelerate 1.15.0 12 of 12, transformers 5.23.0 7 of 8, torch 2.13.0 10 of
12, peft 0.21.2 4 of 4. Two were called internal though a state or a file causes them, and one
named the DeepSpeed config for two training arguments. They were corrected.
E: 200 of the 2,825 messages of every `raise` with arguments and every `assert` with a message in
deepspeed 0.12.3 to 0.19.8, one release per minor and none but 0.19.8 among those above, all of
accelerate 0.27.0 to 1.12.0 and transformers' trainer and DeepSpeed files 4.37.2 to 5.3.0: drawn
with seed 909231 by a script that does not use the harvest, answered or not. What each asks of the
reader was written down from the product's source before any answer was read. Each was put below
its own line, a launcher's or a rank's frames around it. Another 15 had an answer that was wrong or
did not help, so 85 % were right. The false causes were titles of conditions that do not say what
one message means (a checkpoint whose shards are of different steps "was saved with a different
world size"; a launcher that is not installed "is an invalid hostfile") and the second cause of two
values of `fp16`. They were corrected by kind, by reading all answers of DeepSpeed with their
messages.
F: 60 from the same, with seed 417733, after that: 95 % right. The two false causes, a state of
ZeRO-3 and a frozen parameter, were corrected afterwards; nothing was drawn since.
G: 60 from torch 2.13.0 (distributed, elastic, FSDP, cuda, cpp_extension), peft 0.17.1, trl 0.24.0,
bitsandbytes 0.47.0, triton 3.2.0 and the Python of flash_attn 2.8.3, with seed 626262, judged by
reading: one sentence suggested gloo to a build without gloo. Seven of those without an answer are
trl's and bitsandbytes'; two of peft's were drawn without the words of a local variable.
H: 100 from the same releases as E with seed 552817, none of those that E or F had: what each asks
of the reader was written down before any answer was read. The false cause is an artifact of the
draw: a device was filled in as `auto`, which none is. Two answers did not help: a fallback of
torch for an op of DeepSpeed that does not exist on Apple's MPS, corrected, and a workspace for
which there was no room, called internal. Of the two without an answer one says nothing but a
shape, and one is in a patch release that was not harvested.
I: 200 of the 2,831 messages of deepspeed 0.12.2 to 0.19.8 (one or two releases per minor, none but
0.19.8 among those harvested then), accelerate 0.28.0 to 1.13.0 and transformers' trainer and
DeepSpeed files 4.40.2 to 5.24.0, with seed 20261128, as E: at commit cf68f38a, what a careful
reader would accept was written down from the source before the first run. Two of the 200 did not
help (a loss that has to be created anew, and a check of the number of GPUs). The three without an
answer are in releases that were not harvested: since then 34 releases of DeepSpeed, 24 of
accelerate and 36 of transformers are.
J: 100 more, with seed 40815, none of those of I, from these and ten other releases, after that.
One limit of a converter was called internal, and weights that a file of a checkpoint does not
contain were called missing files; both were corrected by kind. Two of the three without an answer
were in files of transformers that were not harvested, which are now.
K: 100 from torch 2.14.1, peft 0.18.0, trl 0.16.1 and 0.29.0, bitsandbytes 0.46.1 and triton 3.5.0
(none harvested then), with seed 7788123, at the same commit as I. The false causes: a kernel's
atomic operation "does not support bf16", pinned memory that was taken for `/dev/shm`, and a shard
that a tensor's own type does not find, "saved with a different world size". One condition did not
say what its message means. 16 of those without an answer are trl's. A pattern of other products'
words gives way to the index since, and torch 2.14.1, triton and bitsandbytes have their answers.
L: 60 of the 1,003 answers that were then new (torch 2.1 to 2.15, datasets, flash_attn, triton,
DeepSpeed, transformers, trl, peft, bitsandbytes), with seed 11, read again next to the code that
raises them, by who wrote them. One asked for a change where datasets checks itself; it was
corrected, and one was worded better. Then every example of a signature, every recorded wording and
each new message itself was diagnosed with the new answers and without: 21 had hidden a condition
and were taken back or name it now, and 18 had words that other programs use too and were taken
back.
M: `--draw 70 --seed 11` from torch 2.15.0 and `--draw 40 --seed 11` from datasets 5.2.0 and
flash_attn 2.8.3, after L, judged by who wrote the answers. An error that was passed on by another
process was called internal; corrected. Of those without an answer, three are bare checks of
flash_attn's C++ code, which were not harvested then and are now.
N: 80 of the answers for huggingface_hub 0.17 to 2.4, with seeds 20261128 and 4711, read again next
to the code that raises them, by who wrote them. One called a stray file in the cache a damaged
repository, and one named a command that these releases did not have; both were corrected by kind.
Every example of a signature, every recorded wording and each new message itself
was diagnosed with the new answers and without: one refusal had hidden a condition whose pattern
names the path, and three had words that torch uses too and were taken back.
O: 80 of the 724 answers for Lightning 1.9 to 2.6, with seed 80, read again next to the code that
raises them, by who wrote them. One named a list that the message does not have, one asked for
something that the script cannot change, and one did not say why a precision is refused; they were
corrected by kind. Every example of a signature, every recorded wording and each new message itself
was diagnosed with the new answers and without: three had hidden a condition and name it now. Since
then a message whose words are common, and whose place is not known, has no answer of a product:
that changed six of 5,413 texts, all towards the condition that they were recorded for.
P: 60 of the 854 answers for vLLM 0.12 to 0.33 (the start of the engine, its config, workers and KV
cache, and what it refuses in a request), with seed 81, as O: two asked for the wrong change and two
were vague. They were corrected, and what is alike. The other 51 messages with words have no answer:
most of them pass on what another process has said, or are lines of a logger. No text changed its
answer.
Q: 60 of the answers for Ray 2.44 to 2.60 (starting and joining a cluster, tasks and actors,
placement groups, collectives, Ray Train), with seed 82, as O: one asked for an installation where a
name is not registered, one for another change than the message, and two were vague. They were
corrected, and one that had hidden a condition names it now. What only says that a worker died has
no answer.
R: 40 of the 380 answers for LLaMA-Factory 0.7 to 0.9, with seed 83, as O: one named another option
than the one at fault, and one called a missing name in a config internal; both were corrected.
S: 40 of the 1,073 answers for Megatron-Core 0.9 to 0.16 (parallel groups, the transformer's config,
optimizers, pipeline schedules, distributed checkpoints), all from 0.16.1, with seed 84, as O. Four
called internal what a script, a derived class or the data causes, and one left out types that a
CUDA graph takes. All answers `internal` were read again, and 40 became refusals.
T: 45 more from all its releases, with seed 85, after that: one sentence was that of its neighbors,
and one was too narrow; they were corrected, and what is alike. 57 messages had the condition of a
rule for all exceptions of distributed checkpoints, or of a pattern that is about DeepSpeed's
config, and have their own answer now. No other text changed its answer.
U: 40 of the 930 answers for verl 0.4 to 0.9 (its config, trainers, workers, rollout, checkpoints),
with seed 86, as O: one asked the script for what verl encodes itself, and one was about the hub
where anything may have failed. Each answer that refers to what its message lists was then compared
with the message: 14 messages, two of them Megatron-Core's, list nothing, and one answer named the
wrong divisor; they were corrected. 14 messages had another condition before. No other text changed
its answer.
V: 40 of the 615 answers for diffusers 0.30 to 0.42 (loading, LoRA, attention, quantization,
schedulers, training), all from 0.42.1, with seed 87, as O: one called a number of ranks internal.
99 were taken back: its quantizers and helpers are copied from transformers, whose messages they
would have answered. Of other texts only three changed, in the wording of their condition.
W: 60 of the 1,957 answers for the newest releases of ms-swift, axolotl, OpenRLHF, Colossal-AI,
sentence-transformers, Liger-Kernel, safetensors, tokenizers and torchao, with seed 91, the code
around each read before its answer, by who wrote them: one left out the change that the message
proposes, one took any failure for a wrong name, one said that the message names another optimizer,
and one check of the product's own state was called a refusal. They were corrected, and what is
alike. 40 messages that are copied from other products have no answer here; of messages with equal
words one that has an answer is chosen since.
X: 30 of the 833 answers for Unsloth 2025.3 to 2026.10 (unsloth and unsloth_zoo), all from the
newest releases, with seed 92, as W. Five shared a sentence with their neighbors that did not fit
them (a stream's number was called a damaged file), and an option of the caller was called
internal. All sentences that several messages share were then compared with each message: 50
answers changed.
Y: 300 messages with seed 130529, drawn as E by a script that does not use the harvest: what each
asks of the reader was written down from the source before any answer was read, and the first run
was judged. 200 of the 2,634 of deepspeed 0.12.6 to 0.19.8, accelerate 0.27.2 to 1.15.0 and
transformers' trainer, tokenizer and DeepSpeed files 4.41.2 to 5.24.0: 170 right, 25 true but no
more than the message, 4 false, 1 without an answer. 60 of torch 2.4.1 to 2.15.0, peft, trl and
bitsandbytes: 57 right, 3 no more than the message. 40 of LLaMA-Factory, ms-swift, axolotl and
Unsloth: 35 right, 3 no more than the message, 2 without an answer. False were a number of nodes
that was sought in the wrong section, an argument of a call that was sought in the config, a size
in the config that was called a damaged checkpoint, and an order of keys that does not matter. All
answers that refer to "the message" were read again with their messages, of all these products: 553
messages have another sentence now, mostly one of their own. One of them, axolotl's, had asked for
the opposite (4 bits for a merge that refuses them), one of bitsandbytes' for a default that is
refused. One answer was hidden by a pattern that only counts with other words in the log.
Z: 200 of the 2,380 of deepspeed 0.12.4 to 0.19.8, accelerate 0.28.0 to 1.15.0 and transformers'
trainer, tokenizer and DeepSpeed files 4.42.4 to 5.24.0, after that, with seed 30112026 and none of
those of Y, drawn and judged as Y, but more strictly: a condition whose title does not say which
value is wrong counts as no more than the message. 158 right, 32 no more than the message, 9 false,
1 without an answer. False were four checks called internal that a setting, the data or an
incomplete folder causes, one of the model's own metadata called the checkpoint's, the wrong one of
four equal messages, the answer of a neighbor, and two patterns of other products' words. Since
then 818 answers are others, in the families of these and wherever a sentence referred to what the
message lists; a pattern that is less sure than the index gives way to its sentence; and releases of
transformers, trl and PEFT between those harvested were added. The same 200 again, which is no new
draw: none without an answer or false, by who wrote the answers.
AA: 80 more of the same products, with seed 4477 and none of Y or Z, after that, by who wrote the
answers: 69 right, 11 no more than the message, none false. The families of the 11, and what torch
asks for, have other sentences since (114 messages).
AB: 200 of the 2,485 of deepspeed 0.12.4 to 0.19.7, accelerate 0.29.2 to 1.14.0 and transformers'
trainer, tokenizer and DeepSpeed files 4.43.3 to 5.22.0, with seed 64120913 at commit e552d10c,
drawn and judged as Z: the first run, by a reader who had not seen the answers. 164 right, 19 no
more than the message, 16 false, 1 without an answer. One of the 16 is an artifact of the draw (a
name of an op with dots). The others were hints of a condition below a sentence that they do not
fit, titles that are true of other messages of the condition only, sentences of a neighbor (a
transformers that is missing was called a model without a policy), and a check of the product's own
state that was called the script's data. Since then a sentence of a condition may have its own hint,
and some 1,520 answers are others, by family: the hints of all conditions of DeepSpeed, accelerate
and transformers, all sentences that only referred to what the message lists (vLLM, FlashAttention,
sentence-transformers, diffusers, verl, Megatron-Core, Ray, huggingface_hub, TRL), the conditions
without a sentence, and the messages that share one fingerprint because they differ only in a digit,
such as the first and the second of two biases, or the release that two releases of a product ask
for.
AC: 80 more of the same, with seed 33071945, after most of that, by who wrote the answers: 75 right,
3 no more than the message, 2 false (the second bias for the first; a batch size that is missing
called a mismatch), from which the last two families come.
AD: 80 more, with seed 55190727, after those: 76 right, 3 no more than the message (one sentence for
the ops that an accelerator lacks), 1 false in its reason. They were corrected.
AE: 200 of the 2,342 of deepspeed 0.12.4 to 0.19.8, accelerate 0.29.2 to 1.15.0 and transformers'
files 4.43.3 to 5.22.0 that were not drawn before, with seed 90731 at commit 00be53f9: the first
run, by a reader who had not seen the answers and wrote down first, from the source, what each
message asks (95 % interval of the right ones: 82 to 91 %). 175 right, 14 no more than the message
though the message does not say what to do, 10 false, 1 without an answer. Of the 175, 28 only
repeat a message that says itself what to do; by that stricter count 147 are right. One of the 10
is again the name of an op with dots. The others: hints and sentences of signatures that override
an answer of the index (a universal checkpoint without the optimizer's state, a config that
disagrees with accelerate's arguments), one sentence for messages of different demands (CPU
affinity on two kinds of GPU, the shape of a fused kernel's weights), and sentences that were not
true (a second installation of DeepSpeed, RANK left in the environment, a parameter that AutoEP
gathers itself). Then what `diagnose` says of each message of these products was compared with its
answer (one message, whose answer has braces, ended it with a traceback), all answers were read
beside the messages, and some 150 of DeepSpeed, accelerate and transformers and 130 of other
products are others.
AF: 100 of those that remained, of 23 releases of deepspeed and 18 of accelerate, with seed 55117,
after most of that, by who wrote the answers: 96 right (6 of them repeat a message that says what
to do), 3 false (one sentence for two kinds of embedding; a setting that an older release lacks; a
tensor-parallel size where there is none), 1 without an answer because the draw prints the name of
a constant. They were corrected with their families.
AG: 200 of the 2,082 of deepspeed 0.12.0 to 0.19.8, accelerate 0.27.2 to 1.15.0 and transformers'
files 4.43.3 to 5.22.0 that none of AB to AF had, with seed 71263 at commit 3925fd81: the first
run, by a reader who had not seen the answers and wrote down first, from the source, what each
message asks. 191 right (95.5 %, 95 % interval 92 to 98 %), 3 no more than the message, 6 false,
none without an answer. Of the 191, 43 only repeat a message that says itself what to do; by that
stricter count 148 are right (74 %). False were two hints of a condition that do not fit the message
(mpi4py for `accelerate launch` by MPI; the Trainer for "auto" values that it cannot fill in
itself), two wrong reasons (a swap file that is gone, where DeepSpeed does not know its path; a kind
of parallelism that accelerate does have), the wrong place to look (the exception is above, not on
another rank), and a limit that the caller sets, called internal. They were corrected with their
families: all messages whose condition has no sentence of its own for them were read beside its
title and hint (four more hints did not fit: a taken port, bf16, NaN and a missing checkpoint in
accelerate and the Trainer), and those of the planner of parameter transfers and of EXAONE's config.
AH: 200 of the 1,882 messages of the same scope that no draw up to AG had, with seed 40417 at commit
6159ce9c, as AG: 193 right (96.5 %, 95 % interval 93 to 98 %), 2 no more than the message, 5 false,
none without an answer. Of the 193, 56 only repeat a message that says itself what to do; by the
stricter count 137 are right (68.5 %). False were: the sizes of AutoEP alone, where the number of
ranks matters too; the weights, where the config alone decides (FastGen); a conversion that would
not help; a launcher that does not exist (XLA); and files "to be copied" that are there, of an
optimizer that has no such state.
After AH nothing was sampled: every message that the downloaded releases of the scope can raise
(deepspeed 2,510, accelerate 451, transformers' files 385) was read with the code that raises it
beside its answer, in all releases that share it. False were about 35 answers of deepspeed (1.4 %),
3 of accelerate and 3 of transformers; about 30 more were vague. They were corrected, and a pattern
that called every attribute that `AcceleratorState` lacks a pair of releases that do not fit.
AI: 100 of the 1,682 that neither had, with seed 51907 at commit 1b8d8a18, as AG: 95 right (95 %,
95 % interval 89 to 98 %), 3 no more than the message, 2 false, none without an answer; 39 of the 95
only repeat a message that says itself what to do (strictly 56 %). So the reading had missed some:
a check that cannot fail, answered as if it had, and the checkpoint blamed where the run that loads
it is at fault. These five were corrected. Then all were read a second time, by answer instead of
by file, and six more corrected: a loss without a graph was answered as one of several elements, and
FastGen's attention was said to run on any newer GPU.
AJ: 200 of the 1,601 of deepspeed 0.12.0 to 0.19.8, accelerate 0.27.2 to 1.15.0 and transformers'
files 4.37.2 to 5.24.0 that neither these nor AB to AF had, with seed 60211 at commit 749cdb94 (the
answers of the first run have sha256 af0baea2f53dd04d), by a reader who had seen none of the
answers and judged more strictly than AI: 184 right (92 %, 95 % interval 87 to 95 %), 5 no more
than the message, 11 false, none without an answer. Of the 184, 55 only repeat a message that says
itself what to do; by that stricter count 129 are right (64.5 %). False were a GPU that is missing
where only a bf16 of another device is refused, an `nvcc` that is there where it is missing, fp16
in the config where it is the default of `init_inference`, and fp16 advised where it was refused;
the folder of a checkpoint whose optimizer is not ZeRO's; two checks called internal that only a
container of the reader's own breaks; one that cannot fail, answered as if it had; a neighbor's
sentence, the name of another function, and a release that another model needs. Then the rows of
deepspeed, accelerate and transformers were read beside their messages once more: some 50 answers
are others, among them a weight for which FastGen has no place, called internal, and fp16 on a TPU
or on Apple's MPS, called a GPU that is missing.
AK: 50 of the 3,189 of torch 2.13.0, peft 0.15.0 to 0.21.2, trl 0.9.6 to 1.16.0 and bitsandbytes
0.49.0, drawn as AJ, with seed 60212 at commit ab0f7e7c, by the same reader, who had seen no answer
of these products: 46 right (92 %, 95 % interval 81 to 97 %), 2 no more than the message, 2 false,
none without an answer; 28 of the 46 only repeat a message that says itself what to do (strictly
36 %). False were a race between nodes that torch's rendezvous repeats by itself, called internal,
and a check of bitsandbytes that only its own caller can break, answered with another device. Then
the rows of torch and bitsandbytes were read: `torch.cuda` given a device of the CPU, a backend that
no package has registered and an object received from two ranks had been called internal.
Then `diagnose` was compared with the rows for each message of torch, peft, trl, accelerate and
transformers: what torch's own `multiprocessing` raises had been taken for the script's.
AL: 100 of the 1,401 of the scope of AJ that neither AJ nor AB to AI had, at commit 9ab486c7, by a
reader who had seen none of the answers and wrote down first, from the source, what each message
asks: 80 with seed 71309 and, in place of 20 that AB to AD had had, 20 with seed 71310 (the answers
of the first run have sha256 107f4a7a20457651 and 9626faadfa1cb0c3). 91 right (95 % interval 84 to
95 %), 2 no more than the message, 6 false, 1 without an answer, which is about a TPU of TensorFlow
and is in a file that the index does not cover. Of the 91, 39 only repeat a message that says itself
what to do; by that stricter count 52 are right. The 100 are of the two draws together, which makes
one sample without replacement only nearly. False were: ZeRO advised where the script's own call
passes gradients; GPU memory for a number of blocks that an earlier check ensures; a property of
`Accelerator` that cannot be set; a number of groups that DeepSpeed, not the reader, chooses; a size
of AutoEP that a pipeline does not allow; and a memory tracker, called internal, that only a
method of a subclass or of another library misuses. No more than the message were an argument that
`Accelerator` does not take itself, and an extension for the CPU alone that was called missing. They
were corrected, and the groups of the other quantized forms on NPU.
After AL the 2,350 messages of deepspeed, accelerate and transformers' files whose answer asks
something, and the 563 called internal, were read with one question: can the reader do it? Of
deepspeed 117 answers are others, of transformers 4, of accelerate none. They asked for sizes,
groups and types that DeepSpeed chooses itself or has checked before (a pipeline size of MiCS, the
dropout of Evoformer attention, the groups of its quantizer on NPU), where the reader's own call,
another setting or nothing of the reader's decides. Nine that were called internal have a cause
of the reader's, such as sizes of a model that FastGen cannot split.
"""
KINDS = ("condition", error_lookup.REFUSAL, error_lookup.INTERNAL, "no answer")


def kind_of(label: error_index.Label | None) -> str:
    """The column of an entry."""
    if label is None:
        return "no answer"
    return label.kind if label.kind in KINDS else "condition"


def counts() -> None:
    """Prints the table of messages by product and release."""
    print("# The error index\n")
    print("Messages that released products can raise, and how many of them have an answer.")
    print("Made by `python benchmarks/error_index.py`; see `tools/harvest_messages.py`.\n")
    print("A wordless exception, such as a bare `assert`, is counted apart: nothing identifies it")
    print("but the function that raises it. If one answer fits all that the function raises, it is")
    print("written; otherwise `diagnose` says who raised it and no more.\n")
    for product in sorted(error_lookup.products(harvest.FOLDER)):
        index = error_index.load(harvest.FOLDER, product)
        header = index.header
        print(f"## {header.product}, {header.made}\n")
        print("| release | messages | condition | refusal | internal | no answer | wordless |")
        print("|---|---:|---:|---:|---:|---:|---:|")
        for release in header.releases:
            seen: collections.Counter[str] = collections.Counter()
            for entry in index.entries:
                if release in entry.releases:
                    found = kind_of(index.answer(entry).label)
                    seen["wordless" if not entry.chunks else found] += 1
            total = sum(seen.values()) - seen["wordless"]
            row = " | ".join(str(seen[kind]) for kind in (*KINDS, "wordless"))
            print(f"| {release} | {total} | {row} |")
        print()
    print(DRAWN, end="")


def log_of(found: harvest.Found, values: random.Random) -> str:
    """A minimal log in which a message is raised."""
    parts = found.text.split("{}")
    text = "".join(part + values.choice(VALUES) for part in parts[:-1]) + parts[-1]
    entry = found.entry
    file, function = NATIVE_CALLERS.get(entry.product, (entry.file, entry.function))
    if entry.file.endswith(".py"):
        file, function = entry.file, entry.function
    return (
        "Traceback (most recent call last):\n"
        '  File "/home/me/train.py", line 41, in <module>\n    main()\n'
        f'  File "/opt/env/lib/python3.11/site-packages/{file}", line {found.line}, '
        f"in {function}\n    raise\n{entry.exception}: {text}\n"
    )


def drawable(path: Path, unanswered: bool) -> list[harvest.Found]:
    """The messages of a release that a traceback can end with."""
    product = path.name.partition("-")[0]
    answers = error_index.load(harvest.FOLDER, product).labels if unanswered else {}
    return [
        found
        for found in harvest.harvest(path, product, release_of(path, product))
        if found.entry.chunks
        and not found.entry.exception.startswith("log.")
        and found.entry.key not in answers
    ]


def draw(paths: Sequence[Path], number: int, seed: int, unanswered: bool) -> None:
    """Prints what `diagnose` answers to messages that are drawn at random."""
    rows = [found for path in paths for found in drawable(path, unanswered)]
    known = logs.signatures_of(packs.load(builtin_only=True))
    values = random.Random(seed)
    outcomes: collections.Counter[str] = collections.Counter()
    for place, found in enumerate(values.sample(rows, number)):
        text = log_of(found, values)
        said = logs.diagnose([logs.Source(name="log", data=text.encode())], known)
        told = said.explained
        answer = told.kind if told else said.outcome.value
        outcomes[answer] += 1
        what = told.text if told else said.causes[0].condition if said.causes else "-"
        where = f"{found.entry.file}:{found.line} {found.entry.function}"
        if said.raised_by is not None:
            what += f" raised_by={said.raised_by.product}"
        print(f"{place} {where}\n  {text.splitlines()[-1][:300]}\n  => {answer}: {what}")
    print(dict(outcomes))


def main() -> None:
    """Prints the table, or draws."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--draw", type=int, metavar="N")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--unanswered", action="store_true")
    parser.add_argument("archives", nargs="*", type=Path)
    args = parser.parse_args()
    if args.draw is None:
        counts()
    else:
        draw(args.archives, args.draw, args.seed, args.unanswered)


if __name__ == "__main__":
    main()
