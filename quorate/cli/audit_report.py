"""``quorate audit report``: reads a source, makes the report, writes the page."""

from __future__ import annotations

from pathlib import Path

from quorate.cli.audit_answer import AuditSource, database, look_at
from quorate.cli.audit_source import check_writable
from quorate.cli.exits import CliError
from quorate.cli.output import Result
from quorate.cli.session import Session

_COLUMNS = ("section", "total", "counted")


def write_report(session: Session, source: AuditSource, target: Path) -> None:
    """Write the page to ``target`` and show what each section counts.

    Raises:
        CliError: As ``audit_answer.answer``; or the file cannot be written.
        QuorateError: The source cannot answer.
    """
    source.check()
    from quorate.cli.report_page import page, require_matplotlib

    require_matplotlib()
    check_writable(target)
    from audit.report import TABLES_READ, covered, make_report

    plan, end_offset = look_at(session, source)
    with session.progress("reading", None), database(source, plan, TABLES_READ) as found:
        sections = make_report(found, source.limit())
        span = covered(found, source.limit())
    answered = source.answered_to(end_offset)
    text = page(str(source.folder or source.log), answered, sections, span)
    try:
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CliError(f"{target}: cannot write the report: {error.strerror}") from error
    rows = [
        {"section": each.name, "total": each.total, "counted": each.counted} for each in sections
    ]
    fields = {"as_of_offset": answered, "file": str(target)}
    session.show(Result("AuditReport", fields, rows=rows, columns=_COLUMNS))
