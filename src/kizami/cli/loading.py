"""Finds the app that MODULE:APP names, and says in a sentence why it can't be had."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, NoReturn

import typer

from kizami.app.app import Kizami
from kizami.core.errors import ConfigurationError, DefinitionError, InvalidInputError, KizamiError

if TYPE_CHECKING:
    from types import ModuleType

AppPlace = Annotated[
    str, typer.Argument(metavar="MODULE:APP", help="The module and the name of the app in it, as in reports:app.")
]
_SHOWN_MAX: Final = 100
_PACKAGE: Final = str(Path(__file__).parents[1])


def load_app(place: str) -> Kizami:
    """Return the app that MODULE:APP names; the working directory is searched first.

    Raises InvalidInputError for a name that leads nowhere, DefinitionError for a module that fails, with its line.
    """
    module_name, _, attribute = place.partition(":")
    named = all(part.isidentifier() for part in [*module_name.split("."), attribute])
    if not named or module_name.endswith(".py"):
        raise _misspelt(place, module_name, attribute)
    found = _find(_load_module(module_name), attribute)
    if isinstance(found, Kizami):
        return found
    kind, remedy = _what_instead(found, module_name, attribute)
    raise InvalidInputError(f"{place} is {kind}, not a Kizami app.", remedy=remedy, path="MODULE:APP")


def _misspelt(place: str, module_name: str, attribute: str) -> InvalidInputError:
    """Guess what was meant: a file, a path, or a name with something before or behind it."""
    parts = module_name.removesuffix(".py").replace("/", ".").replace("\\", ".").split(".")
    module = ".".join(part for part in parts if part.isidentifier()) or "reports"
    name = attribute.partition(".")[0]
    shown = repr(place if len(place) <= _SHOWN_MAX else f"{place[:_SHOWN_MAX]}...")
    remedy = f"Write {module[:_SHOWN_MAX]}:{name if name.isidentifier() else 'app'}."
    return InvalidInputError(f"{shown} doesn't name an app.", remedy=remedy, path="MODULE:APP")


def _find(module: ModuleType, attribute: str) -> object:
    try:
        return getattr(module, attribute)
    except AttributeError as error:
        remedy = f"Write {module.__name__}:NAME with the name that the Kizami object has there."
        message = f"Module {module.__name__} has no {attribute}."
        raise InvalidInputError(message, remedy=remedy, path="MODULE:APP") from error
    except Exception as error:  # noqa: BLE001 - a module's own __getattr__ may raise anything
        _blame(module.__name__, error)


def _what_instead(found: object, module: str, attribute: str) -> tuple[str, str]:
    """Return what stands where an app should, and what to do about it."""
    if found is None:
        return "None", f"Let {module} set {attribute} to the Kizami object when it is imported."
    if isinstance(found, type) or inspect.isroutine(found):
        kind = "a class" if isinstance(found, type) else "a function"
        return kind, f"If it makes the app, add to {module}: app = {attribute}(), and write {module}:app."
    return f"of type {type(found).__name__}", f"Name the variable that holds Kizami(...) in {module}."


def _load_module(name: str) -> ModuleType:
    folder = _working_folder()
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            _blame(name, error)
        remedy = f"Run the command in the folder that holds it; this one is {folder}."
        message = f"There is no module {name[:_SHOWN_MAX]}."
        raise InvalidInputError(message, remedy=remedy, path="MODULE:APP") from error
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - a user's module may raise anything
        _blame(name, error)


def _working_folder() -> str:
    try:
        return os.getcwd()  # noqa: PTH109 - sys.path holds strings
    except OSError as error:
        remedy = "Change to a folder that exists."
        raise ConfigurationError("The working directory is gone or can't be read.", remedy=remedy) from error


def _blame(module: str, error: BaseException) -> NoReturn:
    """Raise what says where in the user's code the import failed, and why."""
    where = _place_of(error)
    if isinstance(error, KizamiError):
        error.add_note(f"({where})")
        raise error
    said = f"{type(error).__name__}: {_text_of(error)}".rstrip(": ")
    remedy = "Install what it imports." if isinstance(error, ModuleNotFoundError) else "Correct it there."
    raise DefinitionError(f"Module {module} can't be loaded: {where}: {said}.", remedy=remedy) from error


def _text_of(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - a user's own error may fail at telling what it is
        return "(it can't say why)"


def _place_of(error: BaseException) -> str:
    """Return file:line of the innermost frame that is the user's own."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{_shown(error.filename)}:{error.lineno}"
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not _is_ours(frame.filename)]
    own = [frame for frame in frames if Path(frame.filename).is_relative_to(Path.cwd())] or frames
    return f"{_shown(own[-1].filename)}:{own[-1].lineno}" if own else "line unknown"


def _is_ours(filename: str) -> bool:
    return filename.startswith((_PACKAGE, "<frozen importlib")) or filename == importlib.__file__


def _shown(filename: str) -> str:
    path = Path(filename)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else filename
