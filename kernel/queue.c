// SPDX-License-Identifier: GPL-2.0-only
/*
 * The calls of the block layer. The core keeps the requests in the elevator's order; the block
 * layer merges bios and requests and reports it.
 *
 * A request for which prepare_request() was called has in elv.priv[0] the core's handle plus one
 * (0: not in the core), and in elv.priv[1] the context of its process. For other requests the
 * block layer may use the same memory otherwise, so it is not accessed.
 */
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/sbitmap.h>
#include <linux/slab.h>
#include <trace/events/block.h>

#include "queue.h"
#include "contexts.h"
#include "core_calls.h"
#include "groups.h"
#include "reservations.h"
#include "settle.h"

unsigned int hw_contexts_max = 2048;
module_param_named(contexts, hw_contexts_max, uint, 0444);
MODULE_PARM_DESC(contexts, "Processes for each queue that are scheduled separately, 16 to 65536; further ones share one context (2048)");

unsigned int hw_groups_max = 256;
module_param_named(groups, hw_groups_max, uint, 0444);
MODULE_PARM_DESC(groups, "Control groups for each queue that are scheduled separately, 1 to 4096; further ones count as their process's last group (256)");

static inline bool is_prepared(struct request *rq)
{
	return rq->rq_flags & HW_RQF_PREPARED;
}

static inline bool in_core(struct request *rq)
{
	return is_prepared(rq) && rq->elv.priv[0];
}

static inline hoistway_request_id handle_of(struct request *rq)
{
	return (hoistway_request_id)(unsigned long)rq->elv.priv[0] - 1;
}

static inline void set_handle(struct request *rq, hoistway_request_id id)
{
	rq->elv.priv[0] = (void *)(unsigned long)(id + 1);
}

static inline struct hw_context *context_of(struct request *rq)
{
	return rq->elv.priv[1];
}

/* The block layer looks for merges with this request. */
static bool is_mergeable(struct request *rq)
{
	switch (req_op(rq)) {
	case REQ_OP_READ:
	case REQ_OP_WRITE:
	case REQ_OP_DISCARD:
	case REQ_OP_SECURE_ERASE:
		break;
	default:
		return false;
	}
	return !(rq->cmd_flags & REQ_NOMERGE_FLAGS) && !(rq->rq_flags & RQF_NOMERGE_FLAGS);
}

static struct hoistway_bio describe(blk_opf_t opf, sector_t sector, unsigned int sectors, hoistway_context context)
{
	struct hoistway_bio bio = { .context = context, .sector = sector, .sectors = sectors };

	switch (opf & REQ_OP_MASK) {
	case REQ_OP_READ:
		bio.op = HOISTWAY_READ;
		break;
	case REQ_OP_DISCARD:
	case REQ_OP_SECURE_ERASE:
		bio.op = HOISTWAY_DISCARD;
		break;
	default:
		bio.op = HOISTWAY_WRITE;
	}
	if (opf & REQ_SYNC)
		bio.flags |= HOISTWAY_SYNC;
	if (opf & (REQ_META | REQ_PRIO))
		bio.flags |= HOISTWAY_META;
	if (opf & REQ_IDLE)
		bio.flags |= HOISTWAY_IDLE;
	return bio;
}

static struct hoistway_bio describe_request(struct request *rq, hoistway_context context)
{
	struct hoistway_bio bio = describe(rq->cmd_flags, blk_rq_pos(rq), blk_rq_sectors(rq), context);

	bio.token = (unsigned long)rq;
	return bio;
}

static struct hoistway_extent extent_of(struct request *rq)
{
	return (struct hoistway_extent){ .sector = blk_rq_pos(rq), .sectors = blk_rq_sectors(rq) };
}

/* hw_bio_merge() reads the number without the lock. */
static inline void set_queued(struct hw_queue *hw, unsigned int queued)
{
	WRITE_ONCE(hw->queued, queued);
}

/* --- the timer --- */

static enum hrtimer_restart timer_fired(struct hrtimer *timer)
{
	struct hw_queue *hw = container_of(timer, struct hw_queue, timer);
	unsigned long flags;
	bool due = false;
	u64 now, at;
	int run;

	spin_lock_irqsave(&hw->lock, flags);
	hw->timer_ns = U64_MAX;
	now = hw_now(hw);
	/*
	 * The core may have put its timer off since this one was armed. The queue is not run then: a
	 * call of next() may put the timer off again, so that it would never be due.
	 */
	while (hw_core_next_timer(hw, &at) == HOISTWAY_OK && at <= now) {
		hw_core_timer(hw, now);
		due = true;
	}
	run = hw_settle(hw, due ? HOISTWAY_RUN : HOISTWAY_OK);
	spin_unlock_irqrestore(&hw->lock, flags);
	hw_run(hw, run);
	return HRTIMER_NORESTART;
}

/* --- insertion --- */

static void unhash(struct request_queue *q, struct request *rq)
{
	elv_rqhash_del(q, rq);
	if (q->last_merge == rq)
		q->last_merge = NULL;
}

static void bypass(struct hw_queue *hw, struct request *rq, bool at_head)
{
	hw->bypassed++;
	if (at_head)
		list_add(&rq->queuelist, &hw->bypass);
	else
		list_add_tail(&rq->queuelist, &hw->bypass);
}

/* Inserts a request into the core. Returns false if the core has no room for it. */
static bool insert_into_core(struct hw_queue *hw, struct request *rq, int *run)
{
	struct hw_context *context = context_of(rq);
	struct hoistway_submitted submitted;
	struct hoistway_bio bio;
	int status;

	context = hw_group_enter(hw, context, rq);
	hw_context_set_ioprio(context, req_get_ioprio(rq));
	if (hw->type->per_hctx)
		hw_core_context_set_cpu(hw, context->handle, rq->mq_hctx->queue_num);
	bio = describe_request(rq, context->handle);
	status = hw_core_submit(hw, &bio, hw_now(hw), &submitted);
	if (status == HOISTWAY_FULL)
		return false;
	if (status < 0) {
		pr_warn_once("hoistway: the core refused a request (%d); it bypasses the elevator\n", status);
		bypass(hw, rq, false);
		return true;
	}
	set_handle(rq, submitted.request);
	set_queued(hw, hw->queued + 1);
	/* If the core waits nevertheless, it goes on waiting. */
	*run |= status == HOISTWAY_RUN;
	if (is_mergeable(rq)) {
		elv_rqhash_add(hw->q, rq);
		if (!hw->q->last_merge)
			hw->q->last_merge = rq;
	}
	return true;
}

static void insert_overflow(struct hw_queue *hw, int *run)
{
	struct request *rq;

	while ((rq = list_first_entry_or_null(&hw->overflow, struct request, queuelist))) {
		list_del_init(&rq->queuelist);
		if (!insert_into_core(hw, rq, run)) {
			list_add(&rq->queuelist, &hw->overflow);
			break;
		}
	}
}

static void insert(struct hw_queue *hw, struct request *rq, bool at_head, struct list_head *free, int *run)
{
	struct request_queue *q = hw->q;

	if (!is_prepared(rq) || blk_rq_is_passthrough(rq) || !blk_rq_sectors(rq)) {
		bypass(hw, rq, at_head);
		return;
	}
	if (in_core(rq)) {
		/* The driver took the request and returned it. */
		int status = hw_core_requeue(hw, handle_of(rq), hw_now(hw));

		hw->requeued++;
		if (status < 0) {
			bypass(hw, rq, at_head);
			return;
		}
		hw->in_flight--;
		set_queued(hw, hw->queued + 1);
		/* The block layer runs the queue after an insertion. */
		hw->waiting = false;
		*run |= status == HOISTWAY_RUN;
		return;
	}
	if (hw->queued && hw_core_joins_at_insert(hw) == 1 && blk_mq_sched_try_insert_merge(q, rq, free))
		return;
	trace_block_rq_insert(rq);
	if (at_head) {
		bypass(hw, rq, true);
	} else if (!list_empty(&hw->overflow) || !insert_into_core(hw, rq, run)) {
		hw->overflowed++;
		list_add_tail(&rq->queuelist, &hw->overflow);
	}
}

static void hw_insert_requests(struct blk_mq_hw_ctx *hctx, struct list_head *list, hw_insert_flags at_head)
{
	struct hw_queue *hw = hw_of(hctx->queue);
	struct request *rq, *next;
	unsigned long flags;
	LIST_HEAD(free);
	int run = 0;

	spin_lock_irqsave(&hw->lock, flags);
	while ((rq = list_first_entry_or_null(list, struct request, queuelist))) {
		list_del_init(&rq->queuelist);
		insert(hw, rq, (__force bool)at_head, &free, &run);
	}
	/* The block layer runs the queue after an insertion. */
	hw_settle(hw, run ? HOISTWAY_RUN : HOISTWAY_OK);
	spin_unlock_irqrestore(&hw->lock, flags);
	list_for_each_entry_safe(rq, next, &free, queuelist) {
		list_del_init(&rq->queuelist);
		blk_mq_free_request(rq);
	}
}

/* --- merging: the block layer calls these with the lock held, through the two functions above and
 * below --- */

static struct hoistway_bio describe_bio(struct hw_queue *hw, struct bio *bio)
{
	struct hw_context *context = hw->merging ? hw->merging : hw->others;

	return describe(bio->bi_opf, bio->bi_iter.bi_sector, bio_sectors(bio), context->handle);
}

/* Begins the search for a merge. Returns false if the elevator searched itself and found none. */
static bool prepare_merge(struct hw_queue *hw, struct bio *bio)
{
	struct hoistway_bio described = describe_bio(hw, bio);
	struct hoistway_neighbour found;
	int status = hw_core_prepare_merge(hw, &described, hw_now(hw), &found);

	hw->candidate = NULL;
	if (status == HOISTWAY_OK) {
		hw->candidate = (struct request *)(unsigned long)found.token;
		hw->candidate_side = found.side;
	}
	return status == HOISTWAY_OK || status == HOISTWAY_SEARCH;
}

static bool hw_bio_merge(struct request_queue *q, struct bio *bio, unsigned int nr_segs)
{
	struct hw_queue *hw = hw_of(q);
	struct hw_context *context;
	struct request *free = NULL;
	unsigned long flags;
	bool merged;
	int run;

	if (!READ_ONCE(hw->queued))
		return false;
	context = hw_context_get(q, hw);
	spin_lock_irqsave(&hw->lock, flags);
	hw->merging = context;
	merged = prepare_merge(hw, bio) && blk_mq_sched_try_merge(q, bio, nr_segs, &free);
	hw->merging = NULL;
	run = hw_settle(hw, HOISTWAY_OK);
	spin_unlock_irqrestore(&hw->lock, flags);
	hw_run(hw, run);
	hw_context_put(context);
	if (free)
		blk_mq_free_request(free);
	return merged;
}

static bool hw_allow_merge(struct request_queue *q, struct request *rq, struct bio *bio)
{
	struct hw_queue *hw = hw_of(q);
	struct hoistway_bio described;

	if (!in_core(rq) || !hw->merging)
		return false;
	if (hw->candidate && hw->candidate != rq)
		return false;
	described = describe_bio(hw, bio);
	return hw_core_allows_merge(hw, handle_of(rq), &described, hw_now(hw)) == 1;
}

static int hw_request_merge(struct request_queue *q, struct request **rq, struct bio *bio)
{
	struct hw_queue *hw = hw_of(q);
	struct hoistway_neighbour found;
	struct hoistway_bio described;
	struct request *candidate;

	if (!hw->merging)
		return ELEVATOR_NO_MERGE;
	if (hw->candidate) {
		candidate = hw->candidate;
		found.side = hw->candidate_side;
	} else {
		described = describe_bio(hw, bio);
		if (hw_core_find_merge(hw, &described, hw_now(hw), &found) != HOISTWAY_OK)
			return ELEVATOR_NO_MERGE;
		candidate = (struct request *)(unsigned long)found.token;
	}
	if (!elv_bio_merge_ok(candidate, bio))
		return ELEVATOR_NO_MERGE;
	*rq = candidate;
	return found.side == HOISTWAY_FRONT ? ELEVATOR_FRONT_MERGE : ELEVATOR_BACK_MERGE;
}

static void hw_request_merged(struct request_queue *q, struct request *rq, enum elv_merge type)
{
	struct hw_queue *hw = hw_of(q);
	struct hoistway_extent extent = extent_of(rq);
	u32 side = type == ELEVATOR_FRONT_MERGE ? HOISTWAY_FRONT : HOISTWAY_BACK;

	if (in_core(rq))
		hw_core_record_growth(hw, handle_of(rq), side, &extent, hw_now(hw));
}

/* `next` was merged into the end of `rq`. It may be in the core or about to be inserted. */
static void hw_requests_merged(struct request_queue *q, struct request *rq, struct request *next)
{
	struct hw_queue *hw = hw_of(q);
	struct hoistway_extent extents[2] = { extent_of(rq), extent_of(next) };

	if (in_core(next)) {
		unhash(q, next);
		if (in_core(rq))
			hw_core_record_join(hw, handle_of(rq), handle_of(next), extents, hw_now(hw));
		next->elv.priv[0] = NULL;
		set_queued(hw, hw->queued - 1);
	} else if (in_core(rq) && is_prepared(next)) {
		struct hw_context *context = context_of(next);
		struct hoistway_bio bio = describe_request(next, context->handle);

		hw_core_record_join_at_insert(hw, handle_of(rq), &extents[0], &bio, hw_now(hw));
	}
}

static struct request *neighbour(struct request_queue *q, struct request *rq, u32 side)
{
	struct hw_queue *hw = hw_of(q);
	struct hoistway_neighbour found;

	if (!in_core(rq) || hw_core_neighbour(hw, handle_of(rq), side, &found) != HOISTWAY_OK)
		return NULL;
	return (struct request *)(unsigned long)found.token;
}

static struct request *hw_former_request(struct request_queue *q, struct request *rq)
{
	return neighbour(q, rq, HOISTWAY_FRONT);
}

static struct request *hw_next_request(struct request_queue *q, struct request *rq)
{
	return neighbour(q, rq, HOISTWAY_BACK);
}

/* --- dispatch --- */

/*
 * Takes the requests whose order the core has decided out of the block layer's search for merges.
 * Requests get there in dispatch only, so after one has left, others are new if the number did not
 * fall.
 */
static void unhash_settled(struct hw_queue *hw)
{
	int i, count = 0;

	if (hoistway_pending(hw->core) & HOISTWAY_PENDING_DISPATCHED)
		count = clamp(hw_core_dispatched(hw, hw->tokens, hw->capacity), 0, (int)hw->capacity);
	if (count >= hw->settled)
		for (i = 0; i < count; i++)
			unhash(hw->q, (struct request *)(unsigned long)hw->tokens[i]);
	hw->settled = count;
}

static struct request *dispatch_from_core(struct hw_queue *hw, struct blk_mq_hw_ctx *hctx, int *run)
{
	struct hoistway_request next;
	struct request *rq = NULL;
	u64 at;
	int status;

	status = hw_core_next(hw, hctx->queue_num, hw_now(hw), &next);
	if (status == HOISTWAY_OK) {
		rq = (struct request *)(unsigned long)next.token;
		unhash(hw->q, rq);
		unhash_settled(hw);
		rq->rq_flags |= RQF_STARTED;
		set_queued(hw, hw->queued - 1);
		hw->in_flight++;
		hw->refused = false;
	} else if (!hw->type->per_hctx) {
		/* With nothing that could end the wait, the block layer's own delay runs the queue again. */
		bool endless = !hw->in_flight && hw_core_next_timer(hw, &at) != HOISTWAY_OK;

		hw->refused = true;
		hw->waiting = !endless;
		hw->polls += endless && hw->queued;
	}
	*run |= hw_settle(hw, HOISTWAY_OK);
	return rq;
}

static struct request *hw_dispatch_request(struct blk_mq_hw_ctx *hctx)
{
	struct hw_queue *hw = hw_of(hctx->queue);
	struct request *rq;
	unsigned long flags;
	int run = 0;

	spin_lock_irqsave(&hw->lock, flags);
	rq = list_first_entry_or_null(&hw->bypass, struct request, queuelist);
	if (rq) {
		list_del_init(&rq->queuelist);
		rq->rq_flags |= RQF_STARTED;
		hw_update_has_work(hw);
	} else if (hw->queued) {
		rq = dispatch_from_core(hw, hctx, &run);
	}
	spin_unlock_irqrestore(&hw->lock, flags);
	hw_run(hw, run && !rq);
	return rq;
}

static bool hw_has_work(struct blk_mq_hw_ctx *hctx)
{
	return READ_ONCE(hw_of(hctx->queue)->has_work);
}

/* --- the life of a request --- */

static void hw_prepare_request(struct request *rq)
{
	rq->elv.priv[0] = NULL;
	rq->elv.priv[1] = hw_context_get(rq->q, hw_of(rq->q));
}

static void complete_in_core(struct hw_queue *hw, struct request *rq)
{
	unsigned long flags;
	u64 token;
	u32 count;
	int status, run = 0;

	spin_lock_irqsave(&hw->lock, flags);
	status = hw_core_complete(hw, handle_of(rq), hw_now(hw), &token, 1, &count);
	rq->elv.priv[0] = NULL;
	if (status >= 0)
		hw->in_flight--;
	if (unlikely(!list_empty(&hw->overflow)))
		insert_overflow(hw, &run);
	/* The elevator may have waited for this completion. */
	run = hw_settle(hw, run || hw->waiting ? HOISTWAY_RUN : status);
	spin_unlock_irqrestore(&hw->lock, flags);
	hw_run(hw, run);
}

static void hw_completed_request(struct request *rq, u64 now_ns)
{
	if (in_core(rq))
		complete_in_core(hw_of(rq->q), rq);
}

static void hw_finish_request(struct request *rq)
{
	if (in_core(rq))
		complete_in_core(hw_of(rq->q), rq);
	if (rq->elv.priv[1]) {
		hw_context_put(rq->elv.priv[1]);
		rq->elv.priv[1] = NULL;
	}
}

static void hw_limit_depth(blk_opf_t opf, struct blk_mq_alloc_data *data)
{
	struct hw_queue *hw = hw_of(data->q);
	struct hw_context *context = NULL;
	struct hoistway_bio bio;
	unsigned long flags;
	int limit;

	if (!hw->type->limits_depth)
		return;
	if (hw->type->limits_by_context)
		context = hw_context_get(data->q, hw);
	spin_lock_irqsave(&hw->lock, flags);
	bio = describe(opf, 0, 1, context ? context->handle : 0);
	limit = hw_core_depth_limit(hw, data->q->nr_requests, &bio);
	spin_unlock_irqrestore(&hw->lock, flags);
	if (context)
		hw_context_put(context);
	if (limit > 0 && limit < data->q->nr_requests)
		data->shallow_depth = limit;
}

/* --- creation and end --- */

static bool is_rotational(struct request_queue *q)
{
#ifdef blk_queue_nonrot
	return !blk_queue_nonrot(q);
#else
	return blk_queue_rot(q);
#endif
}

static unsigned int wanted_capacity(struct request_queue *q)
{
	return clamp_t(unsigned int, q->nr_requests * q->nr_hw_queues, 128, 65536);
}

/*
 * The flags of allocations of tables. Without a way to start I/O the kernel would otherwise go on
 * looking for memory for ever, while the queue is stopped.
 */
#define HW_GFP_TABLES (GFP_NOIO | __GFP_RETRY_MAYFAIL | __GFP_NOWARN)

/* Creates a queue of the core for `capacity` requests. */
static struct hoistway_queue *new_core(struct hw_queue *hw, unsigned int capacity)
{
	struct hoistway_capacity sizes = {
		.requests = capacity,
		.contexts = hw_contexts_max,
		.events = HW_EVENTS,
		.groups = hw_groups_max,
	};
	struct request_queue *q = hw->q;
	struct hoistway_config config;
	struct hoistway_queue *core;
	size_t size = hoistway_fixed_queue_size(&sizes, hw->type->elevator);
	u64 now = ktime_get_ns();
	int status;

	if (!size)
		return NULL;
	/* Whole pages, so that the memory is aligned. */
	size = PAGE_ALIGN(size);
	core = kvzalloc_node(size, HW_GFP_TABLES, q->node);
	if (!core)
		return NULL;
	hoistway_config_default(&config);
	config.layer = 5;
	config.hz = HZ;
	config.nr_requests = 0;
	config.max_sectors = queue_max_sectors(q);
	config.plugging = 0;
	config.merging = 0;
	config.ordered = 0;
	config.ordered_flush = 0;
	config.ordered_fua = 0;
	config.hw_queues = min_t(unsigned int, q->nr_hw_queues, 4096);
	config.rotational = is_rotational(q);
	status = hoistway_queue_init(core, size, &sizes, &config, hw->type->elevator, now);
	if (status < 0) {
		pr_err("hoistway: %s: the core refused its configuration (%d)\n", hw->type->name, status);
		kvfree(core);
		return NULL;
	}
	hoistway_events_enable(core, 0);
	hw_record_created(hw, &sizes, &config, now);
	return core;
}

static u64 *new_tokens(unsigned int capacity)
{
	return kvcalloc(capacity, sizeof(u64), HW_GFP_TABLES);
}

static struct hw_queue *new_queue(struct request_queue *q, struct hw_type *type)
{
	struct hw_queue *hw = kzalloc_node(sizeof(*hw), GFP_NOIO, q->node);
	int i;

	if (!hw)
		return NULL;
	spin_lock_init(&hw->lock);
	kref_init(&hw->users);
	hw->type = type;
	hw->q = q;
	hw->timer_ns = U64_MAX;
	INIT_LIST_HEAD(&hw->bypass);
	INIT_LIST_HEAD(&hw->overflow);
	INIT_LIST_HEAD(&hw->contexts);
	INIT_LIST_HEAD(&hw->reservations);
	for (i = 0; i < HW_GROUP_BUCKETS; i++)
		INIT_HLIST_HEAD(&hw->groups[i]);
#ifdef HW_HRTIMER_SETUP
	hrtimer_setup(&hw->timer, timer_fired, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
#else
	hrtimer_init(&hw->timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS);
	hw->timer.function = timer_fired;
#endif
	hw->capacity = wanted_capacity(q);
	hw->tokens = new_tokens(hw->capacity);
	hw_record_attach(hw);
	hw->core = new_core(hw, hw->capacity);
	if (!hw->core || !hw->tokens)
		goto no_core;
	hw_record_begin(hw);
	hw->others = hw_context_new(hw, 0, GFP_NOIO);
	if (!hw->others || hw_context_register(hw->others))
		goto no_context;
	spin_lock_irq(&hw_queues_lock);
	list_add(&hw->all, &hw_queues);
	spin_unlock_irq(&hw_queues_lock);
	return hw;

no_context:
	if (hw->others)
		hw_context_put(hw->others);
no_core:
	hw_record_end(hw);
	pr_err("hoistway: %s: no memory for a queue of %u requests\n", type->name, hw->capacity);
	kvfree(hw->core);
	kvfree(hw->tokens);
	kref_put(&hw->users, hw_queue_release);
	return NULL;
}

static void end_queue(struct hw_queue *hw)
{
	struct hw_context *context, *next;

	spin_lock_irq(&hw_queues_lock);
	list_del(&hw->all);
	spin_unlock_irq(&hw_queues_lock);
	spin_lock_irq(&hw->lock);
	hw->dead = true;
	spin_unlock_irq(&hw->lock);
	hrtimer_cancel(&hw->timer);
	WARN_ON(hw->queued || !list_empty(&hw->bypass) || !list_empty(&hw->overflow));
	hw_groups_free(hw);
	spin_lock_irq(&hw->lock);
	hw_reservations_free(hw);
	list_for_each_entry_safe(context, next, &hw->contexts, list)
		list_del_init(&context->list);
	spin_unlock_irq(&hw->lock);
	hw_context_put(hw->others);
	hw_record_end(hw);
	kvfree(hw->core);
	kvfree(hw->tokens);
	hw->core = NULL;
	kref_put(&hw->users, hw_queue_release);
}

#ifdef HW_INIT_SCHED_QUEUE

static int hw_init_sched(struct request_queue *q, struct elevator_queue *eq)
{
	struct hw_queue *hw = new_queue(q, hw_type_of(eq->type));

	if (!hw)
		return -ENOMEM;
	eq->elevator_data = hw;
	if (!hw->type->per_hctx)
		blk_queue_flag_set(QUEUE_FLAG_SQ_SCHED, q);
	q->elevator = eq;
	return 0;
}

#else

static int hw_init_sched(struct request_queue *q, struct elevator_type *type)
{
	struct elevator_queue *eq = elevator_alloc(q, type);

	if (!eq)
		return -ENOMEM;
	eq->elevator_data = new_queue(q, hw_type_of(type));
	if (!eq->elevator_data) {
		kobject_put(&eq->kobj);
		return -ENOMEM;
	}
	if (!hw_type_of(type)->per_hctx)
		blk_queue_flag_set(QUEUE_FLAG_SQ_SCHED, q);
	q->elevator = eq;
	return 0;
}

#endif

static void hw_exit_sched(struct elevator_queue *eq)
{
	end_queue(eq->elevator_data);
}

/* --- a change of nr_requests: the queue is frozen, so no request exists --- */

static void resize(struct request_queue *q)
{
	struct hw_queue *hw = hw_of(q);
	unsigned int capacity = wanted_capacity(q);
	struct hoistway_queue *core, *old;
	struct hw_context *context;
	u64 *tokens;
	u32 i;

	if (capacity <= hw->capacity)
		return;
	core = new_core(hw, capacity);
	tokens = new_tokens(capacity);
	if (!core || !tokens) {
		kvfree(core);
		kvfree(tokens);
		pr_warn("hoistway: %s: no memory for %u requests, the queue keeps %u\n", hw->type->name, capacity,
			hw->capacity);
		return;
	}
	spin_lock_irq(&hw->lock);
	if (hw->queued || hw->in_flight) {
		spin_unlock_irq(&hw->lock);
		kvfree(core);
		kvfree(tokens);
		return;
	}
	old = hw->core;
	for (i = 0; i < hw->type->tunable_count; i++) {
		struct hoistway_tunable tunable;

		/* A default may be finer than the unit in which it is read. */
		if (hoistway_tunable(old, i, &tunable) == HOISTWAY_OK && tunable.value != tunable.default_value)
			hoistway_set_tunable(core, i, tunable.value);
	}
	hw->core = core;
	hw->notes = false;
	hw->capacity = capacity;
	swap(hw->tokens, tokens);
	hw_record_begin(hw);
	hw_groups_register(hw);
	list_for_each_entry(context, &hw->contexts, list)
		hw_context_register(context);
	hw_settle(hw, HOISTWAY_OK);
	spin_unlock_irq(&hw->lock);
	kvfree(old);
	kvfree(tokens);
}

/* Tells the tags of a hardware queue that hw_limit_depth() may set any depth. */
static void allow_shallow_depth(struct blk_mq_hw_ctx *hctx)
{
	if (hw_of(hctx->queue)->type->limits_depth && hctx->sched_tags)
		sbitmap_queue_min_shallow_depth(&hctx->sched_tags->bitmap_tags, 1);
}

static int hw_init_hctx(struct blk_mq_hw_ctx *hctx, unsigned int index)
{
	allow_shallow_depth(hctx);
	return 0;
}

#ifdef HW_DEPTH_UPDATED_QUEUE
/* The block layer calls this for a new elevator, too. */
static void hw_depth_updated(struct request_queue *q)
{
	struct blk_mq_hw_ctx *hctx;
	unsigned long i;

	queue_for_each_hw_ctx(q, hctx, i)
		allow_shallow_depth(hctx);
	resize(q);
}
#else
static void hw_depth_updated(struct blk_mq_hw_ctx *hctx)
{
	allow_shallow_depth(hctx);
	resize(hctx->queue);
}
#endif

const struct elevator_mq_ops hw_ops = {
	.init_sched = hw_init_sched,
	.exit_sched = hw_exit_sched,
	.init_hctx = hw_init_hctx,
	.depth_updated = hw_depth_updated,
	.allow_merge = hw_allow_merge,
	.bio_merge = hw_bio_merge,
	.request_merge = hw_request_merge,
	.request_merged = hw_request_merged,
	.requests_merged = hw_requests_merged,
	.limit_depth = hw_limit_depth,
	.prepare_request = hw_prepare_request,
	.finish_request = hw_finish_request,
	.insert_requests = hw_insert_requests,
	.dispatch_request = hw_dispatch_request,
	.has_work = hw_has_work,
	.completed_request = hw_completed_request,
	.former_request = hw_former_request,
	.next_request = hw_next_request,
	.exit_icq = hw_exit_icq,
};
