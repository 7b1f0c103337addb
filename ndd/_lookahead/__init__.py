"""Lookahead: the work of a loop on the last batches of a reader is done for the next ones, before the loop asks.

    for jpegs, labels in reader.next_epoch(batch_size=64):
        images = ndd.decoders.image(jpegs, device="gpu")     # iteration 3 asks; the result of iteration 3 has been made
        images = ndd.resize(images, size=[224, 224])         # while iterations 1 and 2 ran

Nothing is compiled or traced. The loop's calls are recorded as they come; the recording tells what to expect; a call that is
the expected one takes the result that was made ahead, any other call runs as in a program without lookahead.

    user's thread                                                     threads "ndd-lookahead"
    -------------                                                     -----------------------
    ndd.resize(images, ...)
      Operator.call -> schedule                 _execution/schedule.py
        match: which iteration, which call?     matching.py, recording.py
          |  first call on a new batch:
          |  decide how far, how many as one    decision.py
          |  make the expected calls            prefetch.py ------->  run those whose results the loop asks for,
          |                                     merged_batches.py     split merged batches, record an event
          |
          +- expected: a handle of what is made ahead; its value waits for the thread
          +- not expected: drop what was made ahead for this iteration; submit the call as usual

Learning
--------
A batch of a reader gives access to the next ones (`ReaderOutput`). An operator called on it, or on a result of such a call,
belongs to an `Iteration`; so do numbers that the same thread draws meanwhile. Each call becomes a `RecordedCall`: the
operator with its cached constants, where each input comes from (the reader, a call of the iteration, or a value from outside
the loop), and how far its random generator moved on. A `LoopRecording` keeps the last iterations for each output of a reader.

When a loop is trusted
----------------------
* Calls that the last two iterations have in common, from the first one on, are expected in the next ones; after a single
  iteration, all of it.
* On a GPU lookahead works for any loop, on the CPU only for captured ones (`next_epoch(capture=True)`), because the cores may
  be the user's.
* A call takes a result if operator, constants, origin of the inputs, batch size and place of the random generator are the
  expected ones.
* Numbers that `ndd.torchvision` draws from torch's generator on the host are predicted by a copy of it, see
  `random/host_draws.py`, as long as nothing else draws from it within an iteration.
* Only results that the loop asked for before are made, with what they need; so an operator may still be fused with the one
  before it. If the loop asks for another result, it is made then.
* The coming batch is of the element type, number of axes and layout of the recorded one (`kind_of`).

When it is dropped
------------------
At the first unexpected call of an iteration, the results that were made ahead for it are dropped, and the next iterations
expect only the part before that call. A call runs as usual if the work ahead failed (so that the loop's own call raises the
error), if no thread has begun it, if only other calls were expected to use the result, and in a forked child. `reader.reset()`
drops the batches and the results made from them. Loops over two readers, on two GPUs, or of more than 32 calls are followed
only as far as is certain. Users' operators, which could notice that they run early, and operators that write files never run
ahead.

Guarantees
----------
* Values: a generator's numbers belong to its place at the call. (JPEGs that go to a GPU's engines are the exception: see
  `hw_decoder_load` of `decoders.image`.) Merged batches are split into memory of their own.
* Errors: raised at the loop's own call, with its line.
* Writes by torch on a GPU into a result or a constant, before the loop uses it again, are noticed. Other writes, as by NumPy
  into a batch of the reader, are not: work on a copy.

Memory
------
Lookahead works on up to three batches (`threads.DEPTH`), for which the reader reads a few more ahead
(`readers/epochs/read_ahead.py`). On a GPU small batches are merged, and three merged ones are under way: at most 8 batches,
256 samples or 0.1 s of work each (`decision.py`). All results together take at most 1 GiB, or `NDD_LOOKAHEAD_BYTES` of the
environment; one batch is always allowed, however large. Results that only other calls use, such as the decoded pictures before
they are resized, count while a batch is worked on, and are freed when their last call has run. The first batch shows how large
a batch is; until then lookahead works on one at a time. Four threads serve GPUs, one the CPU. A result lives as long as the
loop's handle of it.

How many cores it takes
-----------------------
If batches wait for the loop, or the loop for the GPU, in a dozen iterations in a row, JPEGs are decoded by the GPU's engines
alone and with two threads, until the GPU waits for a batch (`pace.py`). The user's network is then the bound, and
the cores are left to the user. If the GPU is the bound, work for later batches begins in the middle of an iteration, where a
training loop runs its network backward; a reader, of which many batches are ready, reads the next one then too.

Switching it off
----------------
`NDD_LOOKAHEAD=0` in the environment, read at every iteration; or `EvalMode.deferred` and the synchronous modes, which run a
call when it is asked for, or at once.

Captured loops
--------------
A loop with `capture=True` over a reader or an `ExternalSource` promises to call the same operators in every iteration. It
runs as any other loop, so its values cannot differ. The promise allows lookahead on the CPU, and a broken promise is an error:
`captured_loop.py` notes the first iteration's call sites, and raises DALI's errors for later iterations that break it. It
shares nothing with the recording above, which follows values and is never wrong; a captured loop follows lines of the program
and may raise errors.

Modules, each importing only those before it: `threads.py`, `pace.py`, `recording.py`, `captured_loop.py`, `merged_batches.py`,
`prefetch.py`, `decision.py`, `matching.py`. The package lies above `_operator`, which does not know it: `matching.py` registers
with the scheduler (`ask_before_running`) when a reader gives its first batch.
"""
