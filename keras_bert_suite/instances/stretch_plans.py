"""Keeps the plans of the stretches in use, and makes one plan ahead."""

import threading
from concurrent.futures import Future

#: The last batches of a stretch and the first batches of the next are read at the same time.
PLANS_KEPT = 2


class StretchPlans:
    """Keeps the result of `make_plan` for a stretch while the stretch lasts.

    Many threads may ask for a plan. Each plan is made once, on a thread of its own. A copy that is
    sent to another process has `make_plan`, but no plan.

    Args:
        make_plan: function from the number of a stretch to its plan.
    """

    def __init__(self, make_plan):
        self._make_plan = make_plan
        self._lock = threading.Lock()
        self._plans = {}

    def __call__(self, stretch):
        """The plan of a stretch. Waits until the plan is made."""
        return self.prepare(stretch).result()

    def prepare(self, stretch):
        """Begins to make the plan of a stretch if it is not there, and returns its `Future`."""
        with self._lock:
            if stretch not in self._plans:
                if len(self._plans) == PLANS_KEPT:
                    del self._plans[next(iter(self._plans))]
                self._plans[stretch] = plan = Future()
                threading.Thread(target=self._fulfil, args=(plan, stretch), daemon=True).start()
            return self._plans[stretch]

    def _fulfil(self, plan, stretch):
        try:
            plan.set_result(self._make_plan(stretch))
        except BaseException as error:
            with self._lock:
                if self._plans.get(stretch) is plan:
                    del self._plans[stretch]  # The next call tries again.
            plan.set_exception(error)

    def __reduce__(self):
        return StretchPlans, (self._make_plan,)
