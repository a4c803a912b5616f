"""Keeps the plans of the sections in use, and makes one plan ahead."""

import threading
from concurrent.futures import Future

#: The last batches of a section and the first batches of the next are read at the same time.
PLANS_KEPT = 2


class SectionPlans:
    """Keeps the result of `make_plan` for a section while the section lasts.

    Many threads may ask for a plan. Each plan is made once, on a thread of its own. A copy that is
    sent to another process has `make_plan`, but no plan.

    Args:
        make_plan: function from the number of a section to its plan.
    """

    def __init__(self, make_plan):
        self._make_plan = make_plan
        self._lock = threading.Lock()
        self._plans = {}

    def __call__(self, section):
        """The plan of a section. Waits until the plan is made."""
        return self.prepare(section).result()

    def prepare(self, section):
        """Begins to make the plan of a section if it is not there, and returns its `Future`."""
        with self._lock:
            if section not in self._plans:
                if len(self._plans) == PLANS_KEPT:
                    del self._plans[next(iter(self._plans))]
                self._plans[section] = plan = Future()
                threading.Thread(target=self._fulfil, args=(plan, section), daemon=True).start()
            return self._plans[section]

    def _fulfil(self, plan, section):
        try:
            plan.set_result(self._make_plan(section))
        except BaseException as error:
            with self._lock:
                if self._plans.get(section) is plan:
                    del self._plans[section]  # The next call tries again.
            plan.set_exception(error)

    def __reduce__(self):
        return SectionPlans, (self._make_plan,)
