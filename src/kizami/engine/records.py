"""Log records that know the job in which they were made."""

from __future__ import annotations

import logging

from kizami.engine.context import current_or_none


class JobLogFilter(logging.Filter):
    """Gives each record `job_id` and `attempt`: of the job in which it was made, or None outside of one.

    Add it to handlers: `handler.addFilter(JobLogFilter())`; then formats may use `%(job_id)s`.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Add the attributes; every record passes."""
        context = current_or_none()
        record.job_id = context.job_id if context else None
        record.attempt = context.attempt if context else None
        return True
