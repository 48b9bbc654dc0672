"""Shows an answer while it is made, and what it cost: stream.py MODEL ["question"]"""
import sys

from sits_optima import Model

if len(sys.argv) < 2:
    sys.exit(f"usage: {sys.argv[0]} MODEL [\"question\"]")
question = sys.argv[2] if len(sys.argv) > 2 else "Why is the sky blue?"
with Model(sys.argv[1]) as model:
    stream = model.stream_chat([{"role": "user", "content": question}], max_tokens=128)
    for event in stream:
        print(event.text, end="", flush=True)
    counters = stream.result.counters
    print(f"\n{counters.output_tokens} tokens, the first after "
          f"{counters.first_token_ns / 1e6:.0f} ms", file=sys.stderr)
