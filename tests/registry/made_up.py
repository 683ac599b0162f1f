"""Made-up documents and endings over a few names, so that they often meet."""

from hypothesis import strategies as st

from tests.builders import a_filter, a_name, a_subscription, a_topic, an_approval, an_exposure
from tidings.registry.model import ApprovalState, Exposure, NamespaceSource, Subscription, Topic, TopicsSource
from tidings.registry.port import DocumentEnd

TOPICS = ("a", "b", "x:c")
OWNERS = ("ann", "bob")
FILTERS = (None, a_filter({"x": 1}), a_filter({"x": True}))
SUBSCRIPTIONS = ("s", "t")

topics = st.builds(a_topic, st.sampled_from(TOPICS), description=st.sampled_from(("", "new")))
exposures = st.builds(
    an_exposure, st.sampled_from(TOPICS), st.sampled_from(("auto", "manual")), subscribers=st.sampled_from((("*",), ("ann",)))
)
sources = st.one_of(
    st.lists(st.sampled_from(TOPICS), min_size=1, unique=True).map(lambda names: TopicsSource(tuple(map(a_name, names)))),
    st.sampled_from(("default", "x")).map(NamespaceSource),
)
subscriptions = st.builds(
    a_subscription,
    st.sampled_from(SUBSCRIPTIONS),
    source=sources,
    filter=st.sampled_from(FILTERS),
    owner=st.sampled_from(OWNERS),
    description=st.sampled_from(("", "new")),
)
approvals = st.builds(
    an_approval, st.sampled_from(SUBSCRIPTIONS), st.sampled_from(TOPICS), st.sampled_from([s.value for s in ApprovalState])
)
puts = st.lists(st.one_of(topics, exposures, subscriptions, approvals), min_size=1, max_size=3)
endings = st.one_of(
    st.builds(DocumentEnd, st.just(Topic), st.sampled_from(TOPICS).map(a_name), st.booleans()),
    st.builds(DocumentEnd, st.just(Exposure), st.sampled_from(TOPICS).map(a_name)),
    st.builds(DocumentEnd, st.just(Subscription), st.sampled_from(SUBSCRIPTIONS).map(a_name)),
)
