"""Keeps the plans of the epochs in use, and makes one plan ahead."""

import threading
from concurrent.futures import Future

#: The last batches of an epoch and the first batches of the next are read at the same time.
EPOCHS_KEPT = 2


class EpochPlans:
    """Keeps the result of `make_plan` for an epoch while the epoch lasts.

    Many threads may ask for a plan. Each plan is made once, on a thread of its own. A copy that is
    sent to another process has `make_plan`, but no plan.

    Args:
        make_plan: function from an epoch to its plan.
    """

    def __init__(self, make_plan):
        self._make_plan = make_plan
        self._lock = threading.Lock()
        self._plans = {}

    def __call__(self, epoch):
        """The plan of an epoch. Waits until the plan is made."""
        return self.prepare(epoch).result()

    def prepare(self, epoch):
        """Begins to make the plan of an epoch if it is not there, and returns its `Future`."""
        with self._lock:
            if epoch not in self._plans:
                if len(self._plans) == EPOCHS_KEPT:
                    del self._plans[next(iter(self._plans))]
                self._plans[epoch] = plan = Future()
                threading.Thread(target=self._fulfil, args=(plan, epoch), daemon=True).start()
            return self._plans[epoch]

    def _fulfil(self, plan, epoch):
        try:
            plan.set_result(self._make_plan(epoch))
        except BaseException as error:
            with self._lock:
                if self._plans.get(epoch) is plan:
                    del self._plans[epoch]  # The next call tries again.
            plan.set_exception(error)

    def __reduce__(self):
        return EpochPlans, (self._make_plan,)
