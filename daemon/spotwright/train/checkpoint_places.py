"""Where checkpoints are kept: a folder or a bucket. A new one replaces the old at once."""

import io
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import Any, Protocol

from spotwright.domain.errors import BadInputError, MissingExtraError, OutsideWorldError


class CheckpointPlace(Protocol):
    """Keeps one document under each name."""

    def write(self, name: str, parts: Sequence[memoryview]) -> None:
        """Keep a document; whoever reads meanwhile gets the former one, whole."""

    def read(self, name: str) -> bytes | None:
        """Return a document; None: there is none."""

    def names(self) -> list[str]:
        """Return the names of all documents."""

    def describe(self, name: str) -> str:
        """Return where a document is, for messages."""


def open_place(where: str) -> CheckpointPlace:
    """Return the place that a path or `s3://BUCKET/KEY` names."""
    if where.startswith("s3://"):
        return BucketPlace(where)
    if "://" in where:
        raise BadInputError(f"{where!r}: checkpoints are kept in a folder or in s3://BUCKET/KEY")
    return FolderPlace(Path(where))


def shard_name(index: int, count: int) -> str:
    """Return the name of a server's checkpoint."""
    return f"shard-{index}-of-{count}.ckpt"


class FolderPlace:
    """Files in a folder, each renamed into place when it is on disk."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def write(self, name: str, parts: Sequence[memoryview]) -> None:
        """Keep a document."""
        path = self._folder / name
        unfinished = self._folder / f".{name}.{token_hex(4)}.unfinished"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with unfinished.open("xb") as file:
                for part in parts:
                    file.write(part)
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(path)
            _sync_folder(self._folder)
        except OSError as error:
            with suppress(OSError):  # it may not even have been begun
                unfinished.unlink()
            raise OutsideWorldError(f"cannot write {path}: {error.strerror}") from error

    def read(self, name: str) -> bytes | None:
        """Return a document; None: there is none."""
        try:
            return (self._folder / name).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise OutsideWorldError(
                f"cannot read {self._folder / name}: {error.strerror}"
            ) from error

    def names(self) -> list[str]:
        """Return the names of all documents."""
        return sorted(path.name for path in self._folder.glob("shard-*.ckpt"))

    def describe(self, name: str) -> str:
        """Return where a document is, for messages."""
        return str(self._folder / name)


class BucketPlace:
    """Objects below a key of an S3 bucket; S3 shows an object when all of it has arrived."""

    def __init__(self, where: str) -> None:
        bucket, _, key = where.removeprefix("s3://").partition("/")
        if not bucket:
            raise BadInputError(f"{where!r} names no bucket; write s3://BUCKET/KEY")
        self._bucket, self._prefix = bucket, f"{key.rstrip('/')}/" if key else ""
        self._client = _s3_client()

    def write(self, name: str, parts: Sequence[memoryview]) -> None:
        """Keep a document; large ones go up in parts, of which nothing is seen before the last."""
        body = io.BytesIO(b"".join(parts))
        with _told(f"write {self.describe(name)}"):
            self._client.upload_fileobj(body, self._bucket, self._prefix + name)

    def read(self, name: str) -> bytes | None:
        """Return a document; None: there is none."""
        with _told(f"read {self.describe(name)}"):
            try:
                found = self._client.get_object(Bucket=self._bucket, Key=self._prefix + name)
            except self._client.exceptions.NoSuchKey:
                return None
            return bytes(found["Body"].read())

    def names(self) -> list[str]:
        """Return the names of all documents."""
        with _told(f"list {self.describe('')}"):
            pages = self._client.get_paginator("list_objects_v2").paginate(
                Bucket=self._bucket, Prefix=self._prefix
            )
            keys = [entry["Key"] for page in pages for entry in page.get("Contents", ())]
        names = [key.removeprefix(self._prefix) for key in keys]
        return sorted(name for name in names if name.startswith("shard-"))

    def describe(self, name: str) -> str:
        """Return where a document is, for messages."""
        return f"s3://{self._bucket}/{self._prefix}{name}"


@contextmanager
def _told(what: str) -> Iterator[None]:
    """Say in our words what AWS says in its own."""
    from boto3.exceptions import Boto3Error  # noqa: PLC0415
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415

    try:
        yield
    except (Boto3Error, BotoCoreError, ClientError) as error:
        raise OutsideWorldError(f"cannot {what}: {error}") from error


def _s3_client() -> Any:
    try:
        import boto3  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise MissingExtraError("a checkpoint in a bucket", extra="aws") from error
    return boto3.client("s3")


def _sync_folder(folder: Path) -> None:
    """Have the rename itself survive a crash of the host."""
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
