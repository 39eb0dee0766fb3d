/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The calls of the core that change its state or ask for a decision, one function each, with the
 * queue's lock held. Each records itself if the queue is recorded; record.h describes the words.
 */
#ifndef HOISTWAY_CORE_CALLS_H
#define HOISTWAY_CORE_CALLS_H

#include <linux/ktime.h>

#include "record.h"

/* The time of an event, in ns since boot. Read it with the lock held, so that times ascend. */
static inline u64 hw_now(struct hw_queue *hw)
{
	return ktime_get_ns();
}

static inline int hw_core_submit(struct hw_queue *hw, const struct hoistway_bio *bio, u64 now,
				 struct hoistway_submitted *submitted)
{
	int status = hoistway_submit(hw->core, bio, now, submitted);

	HW_RECORD_BIO(hw, SUBMIT, bio, .status = status, .time = now, .token = bio->token,
		      .a = { bio->context, bio->sector, status < 0 ? 0 : submitted->request },
		      .n = { bio->sectors, status < 0 ? 0 : submitted->what });
	return status;
}

static inline int hw_core_requeue(struct hw_queue *hw, hoistway_request_id request, u64 now)
{
	int status = hoistway_requeue(hw->core, request, now);

	HW_RECORD(hw, REQUEUE, .status = status, .time = now, .a = { request });
	return status;
}

static inline int hw_core_next(struct hw_queue *hw, u32 hw_queue, u64 now, struct hoistway_request *next)
{
	bool per_hctx = hw->type->per_hctx;
	int status = per_hctx ? hoistway_next_for(hw->core, hw_queue, now, next) : hoistway_next(hw->core, now, next);
	u64 asked = per_hctx ? hw_queue : HW_RECORD_NO_HW_QUEUE;

	if (status == HOISTWAY_OK)
		HW_RECORD(hw, NEXT, .time = now, .token = next->token, .op = next->op, .flags = next->flags,
			  .a = { next->id, next->sector, next->submitted_ns, asked },
			  .n = { next->sectors, next->pid });
	else
		HW_RECORD(hw, NEXT, .status = status, .time = now, .a = { 0, 0, 0, asked });
	return status;
}

static inline int hw_core_complete(struct hw_queue *hw, hoistway_request_id request, u64 now, u64 *tokens, u32 len,
				   u32 *count)
{
	int status = hoistway_complete(hw->core, request, now, tokens, len, count);

	HW_RECORD(hw, COMPLETE, .status = status, .time = now, .a = { request },
		  .token = status < 0 || !*count ? 0 : tokens[0], .n = { status < 0 ? 0 : *count });
	return status;
}

static inline int hw_core_allows_merge(struct hw_queue *hw, hoistway_request_id request,
				       const struct hoistway_bio *bio, u64 now)
{
	int status = hoistway_allows_merge(hw->core, request, bio, now);

	HW_RECORD_BIO(hw, ALLOWS_MERGE, bio, .status = status, .time = now,
		      .a = { request, bio->context, bio->sector }, .n = { bio->sectors });
	return status;
}

static inline int hw_core_prepare_merge(struct hw_queue *hw, const struct hoistway_bio *bio, u64 now,
					struct hoistway_neighbour *found)
{
	int status = hoistway_prepare_merge(hw->core, bio, now, found);
	bool is = status == HOISTWAY_OK;

	HW_RECORD_BIO(hw, PREPARE_MERGE, bio, .status = status, .time = now, .token = is ? found->token : 0,
		      .a = { is ? found->request : 0, bio->context, bio->sector },
		      .n = { bio->sectors, is ? found->side : 0 });
	return status;
}

static inline int hw_core_joins_at_insert(struct hw_queue *hw)
{
	int status = hoistway_joins_at_insert(hw->core);

	HW_RECORD(hw, JOINS, .status = status);
	return status;
}

static inline int hw_core_find_merge(struct hw_queue *hw, const struct hoistway_bio *bio, u64 now,
				     struct hoistway_neighbour *found)
{
	int status = hoistway_find_merge(hw->core, bio, now, found);
	bool is = status == HOISTWAY_OK;

	HW_RECORD_BIO(hw, FIND_MERGE, bio, .status = status, .time = now, .token = is ? found->token : 0,
		      .a = { is ? found->request : 0, bio->context, bio->sector },
		      .n = { bio->sectors, is ? found->side : 0 });
	return status;
}

static inline int hw_core_neighbour(struct hw_queue *hw, hoistway_request_id request, u32 side,
				    struct hoistway_neighbour *found)
{
	int status = hoistway_neighbour(hw->core, request, side, found);
	bool is = status == HOISTWAY_OK;

	HW_RECORD(hw, NEIGHBOUR, .status = status, .token = is ? found->token : 0,
		  .a = { request, is ? found->request : 0 }, .n = { 0, side });
	return status;
}

static inline int hw_core_record_growth(struct hw_queue *hw, hoistway_request_id request, u32 side,
					const struct hoistway_extent *extent, u64 now)
{
	int status = hoistway_record_growth(hw->core, request, side, extent, now);

	HW_RECORD(hw, GROWTH, .status = status, .time = now, .a = { request, extent->sector },
		  .n = { extent->sectors, side });
	return status;
}

static inline int hw_core_record_join(struct hw_queue *hw, hoistway_request_id request, hoistway_request_id absorbed,
				      const struct hoistway_extent extents[2], u64 now)
{
	int status = hoistway_record_join(hw->core, request, absorbed, extents, now);

	HW_RECORD(hw, JOIN, .status = status, .time = now,
		  .a = { request, absorbed, extents[0].sector, extents[1].sector },
		  .n = { extents[0].sectors, extents[1].sectors });
	return status;
}

static inline int hw_core_record_join_at_insert(struct hw_queue *hw, hoistway_request_id request,
						const struct hoistway_extent *extent, const struct hoistway_bio *bio,
						u64 now)
{
	int status = hoistway_record_join_at_insert(hw->core, request, extent, bio, now);

	HW_RECORD_BIO(hw, INSERT_JOIN, bio, .status = status, .time = now, .token = bio->token,
		      .a = { request, extent->sector, bio->context, bio->sector },
		      .n = { extent->sectors, bio->sectors });
	return status;
}

static inline int hw_core_dispatched(struct hw_queue *hw, u64 *tokens, u32 len)
{
	int count = hoistway_dispatched(hw->core, tokens, len);
	u32 i;

	if (count > 0)
		for (i = 0; i < len && i < (u32)count; i++)
			HW_RECORD(hw, DISPATCHED, .token = tokens[i], .n = { count, i });
	else
		HW_RECORD(hw, DISPATCHED, .status = count);
	return count;
}

static inline int hw_core_next_timer(struct hw_queue *hw, u64 *at)
{
	int status = hoistway_next_timer(hw->core, at);

	HW_RECORD(hw, NEXT_TIMER, .status = status, .a = { status == HOISTWAY_OK ? *at : 0 });
	return status;
}

static inline int hw_core_timer(struct hw_queue *hw, u64 now)
{
	int status = hoistway_timer(hw->core, now);

	HW_RECORD(hw, TIMER, .status = status, .time = now);
	return status;
}

static inline int hw_core_next_work(struct hw_queue *hw, struct hoistway_work *work)
{
	int status = hoistway_next_work(hw->core, work);
	bool is = status == HOISTWAY_OK;

	HW_RECORD(hw, NEXT_WORK, .status = status, .a = { is ? work->context : 0 }, .n = { is ? work->what : 0 });
	return status;
}

static inline int hw_core_context_create(struct hw_queue *hw, u32 pid, hoistway_context *context)
{
	int status = hoistway_context_create(hw->core, pid, HOISTWAY_CLASS_NONE, 0, 0, context);

	HW_RECORD(hw, CONTEXT, .status = status, .a = { status < 0 ? 0 : *context }, .n = { pid });
	return status;
}

static inline int hw_core_context_exit(struct hw_queue *hw, hoistway_context context, u64 now)
{
	int status = hoistway_context_exit(hw->core, context, now);

	HW_RECORD(hw, EXIT, .status = status, .time = now, .a = { context });
	return status;
}

static inline int hw_core_context_set_priority(struct hw_queue *hw, hoistway_context context, u32 class, u32 level,
					       u64 now)
{
	int status = hoistway_context_set_priority(hw->core, context, class, level, now);

	HW_RECORD(hw, PRIORITY, .status = status, .time = now, .a = { context }, .n = { class, level });
	return status;
}

static inline int hw_core_context_set_cpu(struct hw_queue *hw, hoistway_context context, u32 cpu)
{
	int status = hoistway_context_set_cpu(hw->core, context, cpu);

	HW_RECORD(hw, CPU, .status = status, .a = { context }, .n = { cpu });
	return status;
}

static inline int hw_core_context_move(struct hw_queue *hw, hoistway_context context, hoistway_group group, u64 now)
{
	int status = hoistway_context_move(hw->core, context, group, now);

	HW_RECORD(hw, MOVE, .status = status, .time = now, .a = { context, group });
	return status;
}

static inline int hw_core_group_create(struct hw_queue *hw, hoistway_group parent, u32 weight, u64 now,
				       hoistway_group *group)
{
	int status = hoistway_group_create(hw->core, parent, weight, weight, now, group);

	HW_RECORD(hw, GROUP, .status = status, .time = now, .a = { parent, status < 0 ? 0 : *group },
		  .n = { weight });
	return status;
}

static inline int hw_core_group_set_weights(struct hw_queue *hw, hoistway_group group, u32 weight, u64 now)
{
	int status = hoistway_group_set_weights(hw->core, group, weight, weight, now);

	HW_RECORD(hw, WEIGHTS, .status = status, .time = now, .a = { group }, .n = { weight });
	return status;
}

static inline int hw_core_group_remove(struct hw_queue *hw, hoistway_group group, u64 now)
{
	int status = hoistway_group_remove(hw->core, group, now);

	HW_RECORD(hw, GROUP_REMOVE, .status = status, .time = now, .a = { group });
	return status;
}

static inline int hw_core_reserve(struct hw_queue *hw, hoistway_context context,
				  const struct hoistway_reservation *reservation, u64 now, u64 *headroom)
{
	int status = hoistway_reserve(hw->core, context, reservation, now, headroom);

	HW_RECORD(hw, RESERVE, .status = status, .time = now,
		  .a = { context, reservation->bytes_per_second, reservation->depth_bytes,
			 reservation->request_bytes });
	return status;
}

static inline int hw_core_release(struct hw_queue *hw, hoistway_context context, u64 now)
{
	int status = hoistway_release(hw->core, context, now);

	HW_RECORD(hw, RELEASE, .status = status, .time = now, .a = { context });
	return status;
}

static inline int hw_core_group_reserve(struct hw_queue *hw, hoistway_group group,
					const struct hoistway_reservation *reservation, u64 now, u64 *headroom)
{
	int status = hoistway_group_reserve(hw->core, group, reservation, now, headroom);

	HW_RECORD(hw, GROUP_RESERVE, .status = status, .time = now,
		  .a = { group, reservation->bytes_per_second, reservation->depth_bytes,
			 reservation->request_bytes });
	return status;
}

static inline int hw_core_group_release(struct hw_queue *hw, hoistway_group group, u64 now)
{
	int status = hoistway_group_release(hw->core, group, now);

	HW_RECORD(hw, GROUP_RELEASE, .status = status, .time = now, .a = { group });
	return status;
}

static inline int hw_core_set_tunable(struct hw_queue *hw, u32 index, s64 value)
{
	int status = hoistway_set_tunable(hw->core, index, value);

	HW_RECORD(hw, SET_TUNABLE, .status = status, .a = { value }, .n = { index });
	return status;
}

static inline int hw_core_depth_limit(struct hw_queue *hw, u32 nr_requests, const struct hoistway_bio *bio)
{
	int limit = hoistway_depth_limit(hw->core, nr_requests, bio);

	HW_RECORD_BIO(hw, DEPTH_LIMIT, bio, .status = limit < 0 ? limit : 0,
		      .a = { bio->context, bio->sector, bio->sectors },
		      .n = { nr_requests, limit < 0 ? 0 : limit });
	return limit;
}

#endif
