// SPDX-License-Identifier: GPL-2.0-only
/*
 * The state of a queue in /sys/kernel/debug/block/DISK/sched/.
 */
#include <linux/seq_file.h>

#include "debug.h"
#include "core_calls.h"
#include "queue.h"

#ifdef CONFIG_BLK_DEBUG_FS

static int show_state(void *data, struct seq_file *file)
{
	struct request_queue *q = data;
	struct hw_queue *hw = hw_of(q);
	struct hw_context *context;
	unsigned int contexts = 0, groups = 0, bypassing = 0, waiting_for_room = 0;
	struct hw_group *group;
	struct request *rq;
	unsigned long flags;
	u64 timer, now;
	int i;

	spin_lock_irqsave(&hw->lock, flags);
	now = ktime_get_ns();
	list_for_each_entry(context, &hw->contexts, list)
		contexts++;
	for (i = 0; i < HW_GROUP_BUCKETS; i++)
		hlist_for_each_entry(group, &hw->groups[i], node)
			groups++;
	list_for_each_entry(rq, &hw->bypass, queuelist)
		bypassing++;
	list_for_each_entry(rq, &hw->overflow, queuelist)
		waiting_for_room++;
	if (hw_core_next_timer(hw, &timer) != HOISTWAY_OK)
		timer = 0;
	seq_printf(file, "elevator %s\n", hw->type->name);
	seq_printf(file, "capacity %u requests, %u contexts, %u groups\n", hw->capacity, hw_contexts_max, hw_groups_max);
	seq_printf(file, "queued %u\nin_flight %u\nbypassing %u\noverflow %u\n", hw->queued, hw->in_flight, bypassing,
		   waiting_for_room);
	seq_printf(file, "contexts %u\ngroups %u\n", contexts, groups);
	seq_printf(file, "waiting %u\nnotes %u\n", hw->waiting, hw->notes);
	if (timer)
		seq_printf(file, "timer_in_ns %lld\n", (s64)(timer - now));
	else
		seq_puts(file, "timer_in_ns none\n");
	seq_printf(file, "total_overflow %llu\ntotal_shared_contexts %llu\ntotal_bypass %llu\ntotal_requeue %llu\n",
		   hw->overflowed, hw->shared, hw->bypassed, hw->requeued);
	seq_printf(file, "total_polls %llu\ntotal_group_overflow %llu\n", hw->polls, hw->group_overflow);
	spin_unlock_irqrestore(&hw->lock, flags);
	return 0;
}

static int show_contexts(void *data, struct seq_file *file)
{
	struct hw_queue *hw = hw_of(data);
	struct hw_context *context;
	unsigned long flags;

	spin_lock_irqsave(&hw->lock, flags);
	list_for_each_entry(context, &hw->contexts, list)
		seq_printf(file, "pid %d ioprio %u/%u group %llu%s\n", context->pid, context->ioprio >> 13,
			   context->ioprio & 7, context->group, context->kernel_thread ? " kernel" : "");
	spin_unlock_irqrestore(&hw->lock, flags);
	return 0;
}

const struct blk_mq_debugfs_attr hw_debugfs_attrs[] = {
	{ "state", 0400, show_state },
	{ "contexts", 0400, show_contexts },
	{},
};

#endif
