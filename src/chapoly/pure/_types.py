"""What makes the public types final and immutable, as native types are."""

from __future__ import annotations

TYPE_CHECKING = False  # the name is enough for type checkers, and loads no module
if TYPE_CHECKING:
    from typing import Any
    from typing import final as final


class _Immutable(type):
    """The type of types that can be neither subclassed nor changed."""

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> _Immutable:
        for base in bases:
            if isinstance(base, _Immutable):
                raise TypeError(f"type '{base.__module__}.{base.__name__}' is not an acceptable base type")
        return type.__new__(cls, name, bases, namespace)

    def __setattr__(cls, name: str, value: object) -> None:
        raise TypeError(f"cannot set '{name}' attribute of immutable type '{cls.__module__}.{cls.__name__}'")

    def __delattr__(cls, name: str) -> None:
        _Immutable.__setattr__(cls, name, None)


if not TYPE_CHECKING:

    def final(cls):
        """To type checkers typing.final. At run time the type becomes immutable, and complete in itself.

        What it has from a private base is copied into it: so names and texts say `ChaCha20.update`, as the
        native type's do, and not `_Stream.update`. Its objects cannot become another type's.
        """
        private = [base for base in reversed(cls.__mro__) if base.__name__.startswith("_")]
        namespace = {}
        for base in private:
            namespace |= {name: _copy(value, cls.__name__) for name, value in vars(base).items()}
        namespace |= vars(cls)
        slots = [slot for origin in (*private, cls) for slot in origin.__slots__]
        for slot in slots:
            del namespace[slot]
        namespace["__slots__"] = slots
        namespace["__class__"] = property(type, _refuse_class, _refuse_no_class)
        bases = tuple(base for base in cls.__bases__ if base not in private)
        return _Immutable(cls.__name__, bases, namespace)

    def _refuse_class(_object, _kind):
        raise TypeError("__class__ assignment only supported for mutable types or ModuleType subclasses")

    def _refuse_no_class(_object):
        raise TypeError("can't delete __class__ attribute")

    def _copy(value, owner):
        """A method as another type's own; anything else as it is."""
        if isinstance(value, staticmethod):
            return staticmethod(_copy(value.__func__, owner))
        if not isinstance(value, type(_copy)):
            return value
        copy = type(value)(value.__code__, value.__globals__, value.__name__, value.__defaults__)
        copy.__kwdefaults__ = value.__kwdefaults__
        copy.__annotations__ = value.__annotations__
        copy.__qualname__ = f"{owner}.{value.__name__}"
        return copy
