// SPDX-License-Identifier: GPL-2.0-only
/*
 * The I/O contexts of processes. The block layer keeps an icq for each process and queue, in which
 * our context is found; it calls exit_icq() when the process exits or the elevator is replaced.
 *
 * The context is captured in prepare_request(), where the process itself runs: insertion and
 * dispatch may happen in kernel threads.
 */
#include <linux/ioprio.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "contexts.h"
#include "core_calls.h"
#include "reservations.h"
#include "settle.h"

/* The headers of kernel 6.1.176 do not have it, those of 6.1.192 do. */
#ifndef IOPRIO_PRIO_LEVEL
#define IOPRIO_PRIO_LEVEL(ioprio) ((ioprio) & (IOPRIO_NR_LEVELS - 1))
#endif

static struct kmem_cache *context_cache;

static struct hw_icq *icq_of(struct io_cq *icq)
{
	return container_of(icq, struct hw_icq, icq);
}

/* Creates a context that the core does not know yet. */
struct hw_context *hw_context_new(struct hw_queue *hw, pid_t pid, gfp_t gfp)
{
	struct hw_context *context = kmem_cache_zalloc(context_cache, gfp);

	if (!context)
		return NULL;
	refcount_set(&context->users, 1);
	context->hw = hw;
	context->pid = pid;
	context->kernel_thread = pid && (current->flags & PF_KTHREAD);
	INIT_LIST_HEAD(&context->list);
	kref_get(&hw->users);
	return context;
}

void hw_context_put(struct hw_context *context)
{
	if (refcount_dec_and_test(&context->users)) {
		kref_put(&context->hw->users, hw_queue_release);
		kmem_cache_free(context_cache, context);
	}
}

/* Makes a context known to the core, with the attributes that it has. Call with the lock held. */
int hw_context_register(struct hw_context *context)
{
	struct hw_queue *hw = context->hw;
	u16 ioprio = context->ioprio;
	int status = hw_core_context_create(hw, context->pid, &context->handle);

	if (status < 0)
		return -ENOSPC;
	context->ioprio = 0;
	context->group = 0;
	hw_context_set_ioprio(context, ioprio);
	if (hw->type->reserves)
		hw_reserve_for_context(context);
	return 0;
}

void hw_context_set_ioprio(struct hw_context *context, u16 ioprio)
{
	if (context->ioprio == ioprio)
		return;
	context->ioprio = ioprio;
	hw_core_context_set_priority(context->hw, context->handle, IOPRIO_PRIO_CLASS(ioprio), IOPRIO_PRIO_LEVEL(ioprio),
				     hw_now(context->hw));
}

/* Creates the context of the present process. Returns NULL if there is no memory or room for it. */
static struct hw_context *create(struct hw_queue *hw, struct hw_icq *icq)
{
	struct hw_context *context = hw_context_new(hw, current->pid, GFP_ATOMIC | __GFP_NOWARN);
	unsigned long flags;
	int failed;

	if (!context)
		return NULL;
	spin_lock_irqsave(&hw->lock, flags);
	failed = icq->context ? -EEXIST : hw_context_register(context);
	if (!failed) {
		list_add(&context->list, &hw->contexts);
		smp_store_release(&icq->context, context);
	} else if (failed == -ENOSPC) {
		hw->shared++;
	}
	spin_unlock_irqrestore(&hw->lock, flags);
	if (failed) {
		hw_context_put(context);
		context = failed == -EEXIST ? READ_ONCE(icq->context) : NULL;
	}
	return context;
}

/* The icq of the present process that its io_context used last, if it is for this queue. */
static struct hw_context *find_hinted(struct request_queue *q)
{
	struct io_context *ioc = current->io_context;
	struct hw_context *context = NULL;
	struct io_cq *icq;

	if (!ioc)
		return NULL;
	rcu_read_lock();
	icq = rcu_dereference(ioc->icq_hint);
	if (icq && icq->q == q) {
		context = smp_load_acquire(&icq_of(icq)->context);
		if (context && !refcount_inc_not_zero(&context->users))
			context = NULL;
	}
	rcu_read_unlock();
	return context;
}

/*
 * Returns the context of the present process, with a reference. Processes for which there is no
 * room share one context.
 */
struct hw_context *hw_context_get(struct request_queue *q, struct hw_queue *hw)
{
	struct hw_context *context = find_hinted(q);
	struct io_cq *icq;

	if (likely(context))
		return context;
	icq = ioc_find_get_icq(q);
	if (icq) {
		context = smp_load_acquire(&icq_of(icq)->context);
		if (!context)
			context = create(hw, icq_of(icq));
	}
	if (!context)
		context = hw->others;
	refcount_inc(&context->users);
	if (icq)
		put_io_context(icq->ioc);
	return context;
}

/* Ends a context: its process exits, or its group is removed. Call with the lock held, and hw_settle() after it. */
void hw_context_end(struct hw_context *context)
{
	struct hw_queue *hw = context->hw;

	if (context->exited)
		return;
	context->exited = true;
	list_del_init(&context->list);
	if (context->pid)
		hw_reservation_end(hw, context->pid, 0);
	if (hw->core)
		hw->run_due |= hw_core_context_exit(hw, context->handle, hw_now(hw)) == HOISTWAY_RUN;
}

void hw_exit_icq(struct io_cq *icq)
{
	struct hw_context *context = xchg(&icq_of(icq)->context, NULL);
	struct hw_queue *hw;
	unsigned long flags;
	int run = 0;

	if (!context)
		return;
	hw = context->hw;
	spin_lock_irqsave(&hw->lock, flags);
	hw_context_end(context);
	if (!hw->dead)
		run = hw_settle(hw, HOISTWAY_OK);
	spin_unlock_irqrestore(&hw->lock, flags);
	hw_run(hw, run);
	hw_context_put(context);
}

int hw_contexts_init(void)
{
	context_cache = KMEM_CACHE(hw_context, 0);
	return context_cache ? 0 : -ENOMEM;
}

void hw_contexts_exit(void)
{
	kmem_cache_destroy(context_cache);
}
