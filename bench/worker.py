"""A process of its own that serves turns on one store, on request: `python -m bench.worker`, one JSON line each way."""

import django

if __name__ == "__main__":
    django.setup()  # models can be imported from here on

    from bench.serving import serve

    serve()
