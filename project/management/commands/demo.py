"""Serve the whole demo from one process: chat, API, admin and the worker that drives the runs."""

from __future__ import annotations

import os
import socket
import sys

from daphne.endpoints import build_endpoint_description_strings
from daphne.server import Server  # installs the reactor, so nothing of Twisted may come before it
from django.conf import settings
from django.contrib.staticfiles.handlers import ASGIStaticFilesHandler
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils.module_loading import import_string

from project.accounts import ACCOUNTS, PASSWORD

PORT = 8000
MOST = 65535
BACKLOG = 128
EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}  # noqa: S104


class Command(BaseCommand):
    help = "Serve the demo on HOST and PORT of the environment; Ctrl-C ends it."

    def add_arguments(self, parser: CommandParser) -> None:
        # HOST is read by the settings, which allow it as the name of this site.
        parser.add_argument("--port", default=os.environ.get("PORT") or str(PORT))

    def handle(self, *args: object, **options: object) -> None:
        if not settings.DEBUG:
            raise CommandError("The demo is for this machine: serve a deployment with an ASGI server of your choice.")
        host = settings.HOST
        with _listening(host, _port(str(options["port"]))) as listener:
            application = ASGIStaticFilesHandler(import_string(settings.ASGI_APPLICATION.replace(":", ".")))
            self._announce(host, listener.getsockname()[1])
            Server(
                application,
                endpoints=build_endpoint_description_strings(file_descriptor=listener.fileno()),
                server_name="django-steward",
            ).run()
        self.stdout.write("\nStopped. The data is kept for the next start.")

    def _announce(self, host: str, port: int) -> None:
        shown = EVERYWHERE.get(host, f"[{host}]" if ":" in host else host)
        address = f"http://{shown}:{port}"
        lines = [
            "",
            self.style.SUCCESS("django-steward demo"),
            "",
            f"  Chat   {address}/",
            f"  Admin  {address}/admin/",
            f"  API    {address}/agent/",
            "",
            f'  Accounts, each with the password "{PASSWORD}":',
            *(f"    {account.name:<8} {account.does}" for account in ACCOUNTS),
            "",
            f"  Model: {_model_in_words()}",
            "  Ctrl-C stops it.",
            "",
        ]
        self.stdout.write("\n".join(lines))
        self.stdout.flush()


def _model_in_words() -> str:
    name = settings.AGENT["DEFAULT_PROVIDER"]
    if name == "scripted":
        return "a script, for there is no key in the environment"
    return str(settings.AGENT["PROVIDERS"][name].default_model)


def _port(text: str) -> int:
    if not text.isdecimal() or not 0 <= int(text) <= MOST:
        raise CommandError(f"PORT must be a number from 0 to {MOST}, not {text!r}.")
    return int(text)


def _listening(host: str, port: int) -> socket.socket:
    """A socket that listens already, so that nobody can take the port between the check and the start."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
        if sys.platform != "win32":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(BACKLOG)
    except socket.gaierror:
        raise CommandError(f"HOST {host!r} is not an address of this machine.")
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        other = port + 1 if port < MOST else PORT
        raise CommandError(f"Port {port} on {host} cannot be used: {why}. Choose another one: PORT={other} make demo")
    return listener
