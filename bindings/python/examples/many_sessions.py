"""Answers several questions at the same time, one thread each: many_sessions.py MODEL [SESSIONS]

The engine computes their tokens side by side; what the prompts share is computed once."""
import sys
from concurrent.futures import ThreadPoolExecutor

from sits_optima import Model

CITIES = ("Paris", "Rome", "Oslo", "Cairo", "Lima", "Tokyo", "Delhi", "Quito")

if len(sys.argv) < 2:
    sys.exit(f"usage: {sys.argv[0]} MODEL [SESSIONS]")
count = int(sys.argv[2]) if len(sys.argv) > 2 else len(CITIES)
with Model(sys.argv[1]) as model:
    def ask(index):
        city = CITIES[index % len(CITIES)]
        messages = [{"role": "system", "content": "You answer in one short sentence."},
                    {"role": "user", "content": f"In which country is {city}?"}]
        with model.session(context_tokens=512) as session:
            return city, session.chat(messages, max_tokens=24)

    with ThreadPoolExecutor(count) as pool:
        for city, result in pool.map(ask, range(count)):
            print(f"{city}: {result.text.strip()} ({result.counters.cached_tokens} of "
                  f"{result.counters.prompt_tokens} prompt tokens were there)")
