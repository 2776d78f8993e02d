"""Models and the HTTP clients under them: one set an event loop, closed when the loop ends."""

from __future__ import annotations

import asyncio
import inspect
import weakref
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, ExitStack, suppress
from dataclasses import dataclass, field
from typing import Any

import anyio
from pydantic_ai.messages import ModelMessagesTypeAdapter
from pydantic_ai.models import Model, infer_model
from pydantic_ai.providers import Provider, infer_provider, infer_provider_class

MODELS_KEPT = 64

_preloaded: set[str] = set()

LibraryModel = Model[Any]
LibraryProvider = Provider[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where the models of one vendor are, and the key for it; None = as the library finds it in the environment."""

    vendor: str
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)


@dataclass(slots=True, eq=False)
class _LoopClients:
    loop: asyncio.AbstractEventLoop
    stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    providers: dict[str, LibraryProvider] = field(default_factory=dict)
    models: dict[str, LibraryModel] = field(default_factory=dict)
    closer: AsyncGenerator[None] | None = None
    finalizer: weakref.finalize[[_LoopClients], Clients] | None = None

    async def close(self) -> None:
        if self.closer is not None:
            await self.closer.aclose()


class Clients:
    """Models by name. Connections belong to the event loop that opened them, so every loop has its own.

    They are closed by `close`; when this object is forgotten; and by the loop itself when it ends: `asyncio.run`,
    `asyncio.Runner` and `async_to_sync` close the asynchronous generators they have seen, and one of these holds them.
    """

    def __init__(self, endpoint: Endpoint | None) -> None:
        self._endpoint = endpoint
        self._loops: dict[asyncio.AbstractEventLoop, _LoopClients] = {}

    async def model(self, name: str) -> LibraryModel:
        """The model of a `provider:model` name, on the running loop."""
        clients = self._loops.get(asyncio.get_running_loop()) or await self._open()
        model = clients.models.get(name)
        if model is None:
            if len(clients.models) >= MODELS_KEPT:
                clients.models.clear()
            vendor = name.partition(":")[0]
            if vendor not in _preloaded:
                await asyncio.to_thread(self.preload, name)
            provider = await self._provider(clients, vendor)
            model = clients.models[name] = infer_model(name, lambda _: provider)
        return model

    def preload(self, name: str) -> None:
        """Import the vendor's SDK and what is built on first use, off the loop; faults show when it is built there."""
        vendor = name.partition(":")[0]
        anyio.run(anyio.sleep, 0)
        ModelMessagesTypeAdapter.validate_python([])
        with suppress(Exception), ExitStack() as unused:
            infer_model(name, lambda _: self._build(vendor, unused))
        _preloaded.add(vendor)

    async def close(self) -> None:
        """Close the clients of the running loop."""
        clients = self._loops.get(asyncio.get_running_loop())
        if clients is not None:
            await clients.close()

    async def _open(self) -> _LoopClients:
        for gone in [loop for loop in self._loops if loop.is_closed()]:
            self._loops.pop(gone, None)
        clients = _LoopClients(asyncio.get_running_loop())
        clients.closer = _until_closed(clients, self._loops)
        await anext(clients.closer)
        clients.finalizer = weakref.finalize(self, _abandoned, clients)
        clients.finalizer.atexit = False
        return self._loops.setdefault(clients.loop, clients)

    async def _provider(self, clients: _LoopClients, vendor: str) -> LibraryProvider:
        provider = clients.providers.get(vendor)
        if provider is None:
            provider = clients.providers[vendor] = self._build(vendor, clients.stack)
            if hasattr(provider.client, "max_retries"):
                provider.client.max_retries = 0  # the loop retries, and writes each attempt into the ledger
            await clients.stack.enter_async_context(provider)
        return provider

    def _build(self, vendor: str, stack: AsyncExitStack | ExitStack) -> LibraryProvider:
        endpoint = self._endpoint
        if endpoint is None or endpoint.vendor != vendor or not (endpoint.base_url or endpoint.api_key):
            return infer_provider(vendor)
        if vendor == "openai-chat" and endpoint.base_url:
            return _compatible(endpoint.base_url, endpoint.api_key)
        kind = infer_provider_class(vendor)
        accepted = inspect.signature(kind.__init__).parameters
        if endpoint.base_url and "base_url" not in accepted and "openai_client" in accepted:
            return _over_openai_client(kind, endpoint, stack)
        wanted = {"base_url": endpoint.base_url, "api_key": endpoint.api_key}
        return kind(**{name: value for name, value in wanted.items() if value})


async def _until_closed(
    clients: _LoopClients, loops: dict[asyncio.AbstractEventLoop, _LoopClients]
) -> AsyncGenerator[None]:
    try:
        yield
    finally:
        if clients.finalizer is not None:
            clients.finalizer.detach()
        if loops.get(clients.loop) is clients:
            del loops[clients.loop]
        await clients.stack.aclose()


def _abandoned(clients: _LoopClients) -> None:
    """Nobody can use them any more: close them on their loop, whichever thread this is."""
    if not clients.loop.is_closed():
        asyncio.run_coroutine_threadsafe(clients.close(), clients.loop)


def _compatible(base_url: str, api_key: str | None) -> LibraryProvider:
    """A server that speaks Chat Completions, without what only OpenAI's own API understands."""
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    return OpenAICompatibleProvider("openai-compatible", base_url=base_url, api_key=api_key)


def _over_openai_client(
    kind: type[LibraryProvider], endpoint: Endpoint, stack: AsyncExitStack | ExitStack
) -> LibraryProvider:
    """A vendor whose provider class has its address built in, at another address."""
    from openai import AsyncOpenAI

    client = AsyncOpenAI(base_url=endpoint.base_url, api_key=endpoint.api_key or "api-key-not-set")
    if isinstance(stack, AsyncExitStack):
        stack.push_async_callback(client.close)
    build: Any = kind
    provider: LibraryProvider = build(openai_client=client)
    return provider


def known_vendor(prefix: str) -> bool:
    """Whether the library has such a provider (its SDK may be missing)."""
    try:
        infer_provider_class(prefix)
    except ImportError:
        return True
    except ValueError:
        return False
    return True
