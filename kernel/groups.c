// SPDX-License-Identifier: GPL-2.0-only
/*
 * Control groups: the group of a request is that of its bio, and its weight is in the file
 * io.hoistway.weight (cgroup v1: blkio.hoistway.weight) of the group. A group is known by the
 * serial number of its state, which the kernel does not use again.
 *
 * Kernel threads write for many groups. Their writes for a group other than the root go through a
 * context of that group.
 */
#include <linux/cgroup.h>
#include <linux/kernel.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "groups.h"
#include "contexts.h"
#include "core_calls.h"
#include "reservations.h"
#include "settle.h"

#if IS_ENABLED(CONFIG_BLK_CGROUP) && defined(HW_BLKCG_CPD)

/* The number of levels below the root for which groups are kept apart. */
#define DEPTH_MAX 16

struct group_weight {
	struct blkcg_policy_data cpd; /* first */
	u32 weight;
};

static struct blkcg_policy policy;
static bool registered;

/* The weight of a group. It exists while `css` does. */
static struct group_weight *weight_of(struct cgroup_subsys_state *css)
{
	struct blkcg_policy_data **data = (void *)css + HW_BLKCG_CPD;

	return READ_ONCE(registered) ? (struct group_weight *)READ_ONCE(data[policy.plid]) : NULL;
}

/* Creates a group of the core. Returns NULL if there is no memory or room for it. */
static struct hw_group *create(struct hw_queue *hw, struct cgroup_subsys_state *css, hoistway_group parent)
{
	struct group_weight *weight = weight_of(css);
	struct hw_group *group = kzalloc(sizeof(*group), GFP_ATOMIC | __GFP_NOWARN);

	if (!group)
		return NULL;
	group->serial = css->serial_nr;
	group->weight = weight ? READ_ONCE(weight->weight) : HOISTWAY_WEIGHT_DEFAULT;
	if (hw_core_group_create(hw, parent, group->weight, hw_now(hw), &group->handle) < 0) {
		hw->group_overflow++;
		kfree(group);
		return NULL;
	}
	hlist_add_head(&group->node, hw_group_bucket(hw, group->serial));
	if (hw->type->reserves)
		hw_reserve_for_group(hw, group);
	return group;
}

/* Returns the group of `css`, which is not the root, after its ancestors were created. */
static struct hw_group *enter(struct hw_queue *hw, struct cgroup_subsys_state *css)
{
	struct cgroup_subsys_state *path[DEPTH_MAX];
	struct hw_group *group = hw_group_find(hw, css->serial_nr);
	hoistway_group parent;
	int depth = 0;

	if (likely(group))
		return group;
	for (; css && css->parent && !(group = hw_group_find(hw, css->serial_nr)); css = css->parent) {
		if (depth == DEPTH_MAX)
			return NULL;
		path[depth++] = css;
	}
	if (group)
		parent = group->handle;
	else if (hoistway_group_root(hw->core, &parent) < 0)
		return NULL;
	while (depth > 0) {
		group = create(hw, path[--depth], parent);
		if (!group)
			return NULL;
		parent = group->handle;
	}
	return group;
}

static void move(struct hw_context *context, u64 serial, hoistway_group group)
{
	struct hw_queue *hw = context->hw;

	if (hw_core_context_move(hw, context->handle, group, hw_now(hw)) >= 0)
		context->group = serial;
}

/* The context of kernel threads' writes for a group. */
static struct hw_context *writer_of(struct hw_queue *hw, struct hw_group *group, pid_t pid)
{
	struct hw_context *writer = group->writer;

	if (writer)
		return writer;
	writer = hw_context_new(hw, pid, GFP_ATOMIC | __GFP_NOWARN);
	if (!writer)
		return NULL;
	if (hw_context_register(writer)) {
		hw_context_put(writer);
		return NULL;
	}
	list_add(&writer->list, &hw->contexts);
	move(writer, group->serial, group->handle);
	group->writer = writer;
	return writer;
}

/*
 * Returns the context for a request that is about to be inserted, in the group of its bio: that of
 * its process or, for kernel threads, of the group. Call with the lock held.
 */
struct hw_context *hw_group_enter(struct hw_queue *hw, struct hw_context *context, struct request *rq)
{
	struct cgroup_subsys_state *css = rq->bio ? bio_blkcg_css(rq->bio) : NULL;
	struct hw_context *writer;
	struct hw_group *group;
	hoistway_group root;
	u64 serial;

	serial = css && css->parent ? css->serial_nr : 0;
	if (likely(context->group == serial) || context == hw->others)
		return context;
	if (!serial) {
		if (hoistway_group_root(hw->core, &root) >= 0)
			move(context, 0, root);
		return context;
	}
	group = enter(hw, css);
	if (!group)
		return context;
	if (context->kernel_thread) {
		writer = writer_of(hw, group, context->pid);
		if (writer && writer != (struct hw_context *)rq->elv.priv[1]) {
			refcount_inc(&writer->users);
			hw_context_put((struct hw_context *)rq->elv.priv[1]);
			rq->elv.priv[1] = writer;
		}
		return writer ? writer : context;
	}
	move(context, serial, group->handle);
	return context;
}

/* Removes a group whose control group no longer exists. Call with the lock held. */
static void forget(struct hw_queue *hw, struct hw_group *group)
{
	struct hw_context *context;
	hoistway_group root;

	if (group->writer) {
		hw_context_end(group->writer);
		hw_context_put(group->writer);
	}
	if (hoistway_group_root(hw->core, &root) >= 0)
		list_for_each_entry(context, &hw->contexts, list)
			if (context->group == group->serial)
				move(context, 0, root);
	hw_reservation_end(hw, 0, group->serial);
	hw_core_group_remove(hw, group->handle, hw_now(hw));
	hlist_del(&group->node);
	kfree(group);
}

/* Creates all groups again in a new core, without ancestors: contexts enter them at their next
 * request. Call with the lock held. */
void hw_groups_register(struct hw_queue *hw)
{
	struct hlist_node *next;
	struct hw_group *group;
	int i;

	for (i = 0; i < HW_GROUP_BUCKETS; i++)
		hlist_for_each_entry_safe(group, next, &hw->groups[i], node) {
			if (group->writer) {
				list_del_init(&group->writer->list);
				group->writer->exited = true;
				hw_context_put(group->writer);
			}
			hlist_del(&group->node);
			kfree(group);
		}
}

void hw_groups_free(struct hw_queue *hw)
{
	unsigned long flags;

	spin_lock_irqsave(&hw->lock, flags);
	hw_groups_register(hw);
	spin_unlock_irqrestore(&hw->lock, flags);
}

/* --- the file of a group's weight --- */

static int show_weight(struct seq_file *file, void *data)
{
	struct group_weight *weight = weight_of(seq_css(file));

	if (!weight)
		return -ENODEV;
	seq_printf(file, "%u\n", READ_ONCE(weight->weight));
	return 0;
}

static ssize_t write_weight(struct kernfs_open_file *of, char *text, size_t size, loff_t offset)
{
	struct cgroup_subsys_state *css = of_css(of);
	struct group_weight *weight = weight_of(css);
	struct hw_queue *hw;
	struct hw_group *group;
	unsigned long flags;
	int run;
	unsigned int value;
	int error;

	text = strim(text);
	if (!strncmp(text, "default ", 8))
		text = strim(text + 8);
	error = kstrtouint(text, 10, &value);
	if (error)
		return error;
	if (value < HOISTWAY_WEIGHT_MIN || value > HOISTWAY_WEIGHT_MAX)
		return -ERANGE;
	if (!weight)
		return -ENODEV;
	WRITE_ONCE(weight->weight, value);
	spin_lock_irqsave(&hw_queues_lock, flags);
	list_for_each_entry(hw, &hw_queues, all) {
		spin_lock(&hw->lock);
		group = hw_group_find(hw, css->serial_nr);
		if (group) {
			group->weight = value;
			hw_core_group_set_weights(hw, group->handle, value, hw_now(hw));
		}
		run = hw_settle(hw, HOISTWAY_OK);
		spin_unlock(&hw->lock);
		hw_run(hw, run);
	}
	spin_unlock_irqrestore(&hw_queues_lock, flags);
	return size;
}

static struct cftype unified_files[] = {
	{ .name = "hoistway.weight", .flags = CFTYPE_NOT_ON_ROOT, .seq_show = show_weight, .write = write_weight },
	{}
};

static struct cftype legacy_files[] = {
	{ .name = "hoistway.weight", .flags = CFTYPE_NOT_ON_ROOT, .seq_show = show_weight, .write = write_weight },
	{}
};

static struct blkcg_policy_data *alloc_weight(gfp_t gfp)
{
	struct group_weight *weight = kzalloc(sizeof(*weight), gfp);

	if (!weight)
		return NULL;
	weight->weight = HOISTWAY_WEIGHT_DEFAULT;
	return &weight->cpd;
}

/* The group of the weight ends: all queues forget it. */
static void free_weight(struct blkcg_policy_data *data)
{
	struct cgroup_subsys_state *css = (struct cgroup_subsys_state *)data->blkcg;
	struct hw_queue *hw;
	struct hw_group *group;
	unsigned long flags;

	if (css) {
		spin_lock_irqsave(&hw_queues_lock, flags);
		list_for_each_entry(hw, &hw_queues, all) {
			spin_lock(&hw->lock);
			group = hw_group_find(hw, css->serial_nr);
			if (group)
				forget(hw, group);
			spin_unlock(&hw->lock);
		}
		spin_unlock_irqrestore(&hw_queues_lock, flags);
	}
	kfree(container_of(data, struct group_weight, cpd));
}

static struct blkcg_policy policy = {
	.dfl_cftypes = unified_files,
	.legacy_cftypes = legacy_files,
	.cpd_alloc_fn = alloc_weight,
	.cpd_free_fn = free_weight,
};

int hw_groups_init(void)
{
	int error = blkcg_policy_register(&policy);

	if (error)
		pr_warn("hoistway: no weights of control groups: the kernel has no room for another I/O policy (%d)\n", error);
	WRITE_ONCE(registered, !error);
	return 0;
}

void hw_groups_exit(void)
{
	if (registered)
		blkcg_policy_unregister(&policy);
	WRITE_ONCE(registered, false);
}

#else

struct hw_context *hw_group_enter(struct hw_queue *hw, struct hw_context *context, struct request *rq)
{
	return context;
}

void hw_groups_register(struct hw_queue *hw)
{
}

void hw_groups_free(struct hw_queue *hw)
{
}

int hw_groups_init(void)
{
	return 0;
}

void hw_groups_exit(void)
{
}

#endif
