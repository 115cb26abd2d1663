"""The Slack mirror: ordinary code on top of the app. Importing it loads no SDK; the first call does."""

from kizami.engine.cursor import Cursor
from kizami.slack.board import Fetched, StatusBoard
from kizami.slack.board_publish import BoardOutcome
from kizami.slack.client import Slack
from kizami.slack.dates import local_date
from kizami.slack.deliveries import Deliveries
from kizami.slack.delivery_round import DeliveryReport
from kizami.slack.message import Message, message
from kizami.slack.user_table import UserTable
from kizami.slack.user_table_names import UserTableError

__all__ = [
    "BoardOutcome",
    "Cursor",
    "Deliveries",
    "DeliveryReport",
    "Fetched",
    "Message",
    "Slack",
    "StatusBoard",
    "UserTable",
    "UserTableError",
    "local_date",
    "message",
]
