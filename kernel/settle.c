// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the parts above do after each call of the core, and what all queues have in common.
 */
#include <linux/slab.h>

#include "settle.h"
#include "core_calls.h"
#include "notes.h"

LIST_HEAD(hw_queues);
DEFINE_SPINLOCK(hw_queues_lock);

static void arm_timer(struct hw_queue *hw)
{
	u64 at;

	if (hw_core_next_timer(hw, &at) != HOISTWAY_OK)
		return;
	if (at < hw->timer_ns && !hw->dead) {
		hw->timer_ns = at;
		hrtimer_start(&hw->timer, ns_to_ktime(at), HRTIMER_MODE_ABS);
	}
}

/*
 * Does what every call of the core leaves to do: deferred work, the timer, notes. Returns 1 if the
 * hardware queues must be run once the lock is released: the block layer goes on by itself with
 * requests that it was not refused.
 */
int hw_settle(struct hw_queue *hw, int status)
{
	int run = status == HOISTWAY_RUN || hw->run_due, pending = hoistway_pending(hw->core);
	struct hoistway_work work;

	hw->run_due = false;
	if (pending & HOISTWAY_PENDING_WORK)
		while (hw_core_next_work(hw, &work) == HOISTWAY_OK)
			run |= work.what == HOISTWAY_WORK_RUN;
	if (run) {
		run = hw->queued && (hw->refused || hw->type->per_hctx);
		hw->refused = false;
		hw->waiting = false;
	}
	/* A timer of the kernel without one of the core finds nothing to do. */
	if (pending & HOISTWAY_PENDING_TIMER)
		arm_timer(hw);
	hw_update_has_work(hw);
	if (hw_notes_wanted(hw))
		hw_notes(hw);
	else if (unlikely(hw->notes))
		hw_notes_end(hw);
	return run;
}

void hw_run(struct hw_queue *hw, int run)
{
	if (run)
		blk_mq_run_hw_queues(hw->q, true);
}

void hw_queue_release(struct kref *users)
{
	kfree(container_of(users, struct hw_queue, users));
}
