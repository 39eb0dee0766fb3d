/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef HOISTWAY_SETTLE_H
#define HOISTWAY_SETTLE_H

#include "hoistway_iosched.h"

extern struct list_head hw_queues;
extern spinlock_t hw_queues_lock;

int hw_settle(struct hw_queue *hw, int status);
void hw_run(struct hw_queue *hw, int run);
void hw_queue_release(struct kref *users);

static inline void hw_update_has_work(struct hw_queue *hw)
{
	bool work = !list_empty(&hw->bypass) || (hw->queued && !hw->waiting);

	if (hw->has_work != work)
		WRITE_ONCE(hw->has_work, work);
}

#endif
