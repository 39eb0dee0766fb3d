// SPDX-License-Identifier: GPL-2.0-only
/*
 * The state of a queue in /sys/kernel/debug/block/DISK/sched/, and the elevator's notes in
 * blktrace.
 */
#include <linux/blktrace_api.h>
#include <linux/seq_file.h>

#include "hoistway_iosched.h"
#include "core_calls.h"

static const char *const kinds[] = {
	[HOISTWAY_EVENT_ACTIVATE] = "activate",
	[HOISTWAY_EVENT_SLICE_SET] = "slice until",
	[HOISTWAY_EVENT_SLICE_EXPIRED] = "slice expired, left",
	[HOISTWAY_EVENT_IDLE_ARMED] = "idle until",
	[HOISTWAY_EVENT_IDLE_HIT] = "idle ended by a request",
	[HOISTWAY_EVENT_IDLE_TIMEOUT] = "idle timed out",
	[HOISTWAY_EVENT_PREEMPT] = "preempts",
	[HOISTWAY_EVENT_BATCH] = "batch",
	[HOISTWAY_EVENT_OVERDUE] = "deadline passed",
	[HOISTWAY_EVENT_ANTICIPATE] = "anticipate until",
	[HOISTWAY_EVENT_ANTICIPATION_BROKEN] = "anticipation ended",
	[HOISTWAY_EVENT_ANTICIPATION_TIMEOUT] = "anticipation timed out",
	[HOISTWAY_EVENT_CHARGE] = "charged",
	[HOISTWAY_EVENT_BUDGET_EXPIRED] = "budget ended, served",
	[HOISTWAY_EVENT_WEIGHT_RAISED] = "weight raised",
	[HOISTWAY_EVENT_QUEUES_MERGED] = "merged into the queue of",
	[HOISTWAY_EVENT_QUEUE_SPLIT] = "queue of its own",
	[HOISTWAY_EVENT_INJECTED] = "injected into the turn of",
	[HOISTWAY_EVENT_TOKEN_DEPTH] = "depth",
	[HOISTWAY_EVENT_AGED] = "aged",
	[HOISTWAY_EVENT_WORKLOAD] = "workload until",
	[HOISTWAY_EVENT_POSTPONED] = "postponed",
	[HOISTWAY_EVENT_SWEEP_BEGUN] = "sweep, bytes",
	[HOISTWAY_EVENT_DEGRADED] = "degraded, bound",
};

/* Passes the core's notes on to blktrace. Recording begins with the first call after a trace was
 * started. Call with the lock held. */
void hw_notes(struct hw_queue *hw)
{
	struct hoistway_event event;

	if (!hw->notes)
		hoistway_events_enable(hw->core, 1);
	hw->notes = true;
	while (hoistway_next_event(hw->core, &event) == HOISTWAY_OK) {
		const char *kind = event.kind < ARRAY_SIZE(kinds) ? kinds[event.kind] : NULL;

		if (kind)
			blk_add_trace_msg(hw->q, "%s %u: %s %llu (%u)", hw->type->name, event.pid, kind, event.value,
					  event.detail);
	}
}

/* The trace has ended: the core records no notes any more, and those that it has are dropped. */
void hw_notes_end(struct hw_queue *hw)
{
	struct hoistway_event event;

	hoistway_events_enable(hw->core, 0);
	while (hoistway_next_event(hw->core, &event) == HOISTWAY_OK)
		;
	hw->notes = false;
}

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
