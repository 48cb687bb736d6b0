"""What tests of pages share: HTML whose tags are closed."""

from html.parser import HTMLParser


class Balanced(HTMLParser):
    """HTML whose tags are closed in order, none of which comes from data."""

    def __init__(self, text):
        super().__init__()
        self.open, self.seen = [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        assert tag in {"div", "table", "tr", "th", "td", "p", "dl", "dt", "dd", "b", "h3"}
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.seen.append(data)
