"""Every model vendor of the `pydantic-ai-slim` library, behind our port.

    PydanticAIProvider("anthropic:claude-sonnet-5-5")                     # the key is in ANTHROPIC_API_KEY
    PydanticAIProvider("openai:gpt-5.6-luna", api_key=KEY)                # OpenAI's Responses
    PydanticAIProvider("openai-chat:qwen3", base_url="http://gpu:8000/v1")  # a server that speaks Chat Completions

The library is imported with the first call, in a thread: it takes seconds and up to 117 MB.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from agent.domain.model_calls import FrameEmitter, Json, ModelRequest, Reply

if TYPE_CHECKING:
    from agent.providers._library.engine import Engine

SDKS = {"openai": "openai", "openai-chat": "openai", "openai-responses": "openai", "anthropic": "anthropic"}
OPENAI_MODEL = "gpt-5.6-luna"
ANTHROPIC_MODEL = "claude-haiku-5-5"
SECONDS_OF_SILENCE = 300.0


class PydanticAIProvider:
    """A `ModelProvider` over the library: `model` is a `provider:model` name, the default for requests without one.

    `base_url` and `api_key` are for the vendor of `model`; other vendors, and an absent key, come from the
    environment as the library documents it. `settings` are defaults under those of a request (temperature,
    max_tokens, thinking, cache ...). `timeout`: seconds without a byte before a call counts as broken off; None = the
    SDK's own. `finish_required=False` is for servers that never say why they stopped. Raises ImportError when the
    library or the vendor's SDK is not installed, ValueError when an address or a key has no model to belong to.
    """

    alternating_roles = False
    leading_system_only = False
    supports_tools = True

    def __init__(
        self,
        model: str | None = None,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        settings: Mapping[str, Json] | None = None,
        timeout: float | None = SECONDS_OF_SILENCE,
        finish_required: bool = True,
    ) -> None:
        if (base_url or api_key) and not (model and ":" in model):
            raise ValueError("Name the model (provider:model) that this base_url or api_key is for.")
        if model is not None and ":" not in model:
            raise ValueError(f"Write {model!r} with its provider, for example openai:{model}.")
        _require(model)
        self.default_model = model
        self._base_url = base_url
        self._api_key = api_key
        self._settings = dict(settings or {})
        self._timeout = timeout
        self._finish_required = finish_required
        self._engine: Engine | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.default_model!r})"

    async def stream(self, request: ModelRequest, emit: FrameEmitter) -> Reply:
        """Make one model call.

        Emits `text`, `reasoning`, `tool-input-start`, `tool-input-delta` and, at the end, `tool-input-available`.
        Raises `ModelError` (transient: 408, 409, 425, 429, 5xx, a lost or cut connection, silence) and `Cancelled`
        within a second of the request's flag being set; both carry the usage reported so far, and so does the
        `CancelledError` of a cancelled task, as its attribute `usage`.
        """
        engine = self._engine
        if engine is None:
            engine = await asyncio.to_thread(self._load)
        return await engine.stream(request, emit)

    def preload(self) -> None:
        """Import the library and the SDK of the default model now, as a process may wish to do before it serves."""
        engine = self._load()
        if self.default_model is not None:
            engine.clients.preload(self.default_model)

    async def aclose(self) -> None:
        """Close the connections of the running loop; a loop that ends does it by itself."""
        if self._engine is not None:
            await self._engine.clients.close()

    def _load(self) -> Engine:
        from agent.providers._library.clients import Endpoint
        from agent.providers._library.engine import Engine

        vendor = (self.default_model or "").partition(":")[0]
        endpoint = Endpoint(vendor=vendor, base_url=self._base_url, api_key=self._api_key) if vendor else None
        engine = self._engine = self._engine or Engine.over(
            endpoint,
            default=self.default_model,
            settings=self._settings,
            timeout=self._timeout,
            finish_required=self._finish_required,
            secrets=tuple(_secrets(self._base_url, self._api_key)),
        )
        return engine


def provider_from_environment(env: Mapping[str, str]) -> PydanticAIProvider | None:
    """The provider that the environment names; None when it holds no key and no address.

    Reads OPENAI_API_KEY, OPENAI_BASE_URL (a server that speaks Chat Completions; it needs no key), ANTHROPIC_API_KEY
    and AGENT_MODEL (with or without `provider:`). Where both vendors have a key, AGENT_MODEL chooses, else OpenAI.
    """
    openai, address, anthropic = (
        env.get(name, "").strip() or None for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY")
    )
    if not (openai or address or anthropic):
        return None
    model = env.get("AGENT_MODEL", "").strip()
    if ":" not in model:
        vendor = "openai-chat" if address else "openai" if openai else "anthropic"
        model = f"{vendor}:{model or (OPENAI_MODEL if vendor != 'anthropic' else ANTHROPIC_MODEL)}"
    vendor = model.partition(":")[0]
    if vendor == "anthropic":
        return PydanticAIProvider(model, api_key=anthropic)
    if vendor.startswith("openai"):
        return PydanticAIProvider(model, api_key=openai, base_url=address)
    return PydanticAIProvider(model)


def _require(model: str | None) -> None:
    """Say what to install now, not in somebody's turn."""
    sdk = SDKS.get((model or "").partition(":")[0])
    missing = next((name for name in ("pydantic_ai", sdk) if name and find_spec(name) is None), None)
    if missing:
        extra = sdk or "openai"
        raise ImportError(f"{missing} is not installed. For this model: pip install 'django-steward[{extra}]'")


def _secrets(base_url: str | None, api_key: str | None) -> list[str]:
    password = urlsplit(base_url).password if base_url else None
    return [secret for secret in (api_key, password) if secret]
