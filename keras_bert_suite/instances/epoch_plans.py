"""The plans of the epochs in use, one of them made ahead."""

import threading
from concurrent.futures import Future

#: An epoch's last batches and the next one's first are read at the same time.
EPOCHS_KEPT = 2


class EpochPlans:
    """What `make_plan` returns for an epoch, kept while the epoch lasts.

    May be asked from many threads; a plan is made once, on a thread of its own. A copy
    sent to another process takes `make_plan` along, and no plan.

    Args:
        make_plan: function from an epoch to its plan.
    """

    def __init__(self, make_plan):
        self._make_plan = make_plan
        self._lock = threading.Lock()
        self._plans = {}

    def __call__(self, epoch):
        """The plan of an epoch, waited for if need be."""
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
            plan.set_exception(error)

    def __reduce__(self):
        return EpochPlans, (self._make_plan,)
