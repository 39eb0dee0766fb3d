// SPDX-License-Identifier: GPL-2.0-only
/*
 * Loading and unloading: registers the elevators that the parameter `elevators` names.
 */
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "contexts.h"
#include "debug.h"
#include "groups.h"
#include "queue.h"
#include "record.h"
#include "tunables.h"

static char *elevators = "cfq,anticipatory,fiops,cfq-bw,cfq-wf2q,bfq-v0,cfq-v3,paternoster";
module_param(elevators, charp, 0444);
MODULE_PARM_DESC(elevators, "Elevators to register, by hoistway's names, with commas; those of names that the kernel uses itself get the prefix h-");

static LIST_HEAD(types);

/* The names and aliases of the kernel's own elevators. */
static const char *const taken[] = { "none", "noop", "deadline", "mq-deadline", "bfq", "kyber" };

static bool is_taken(const char *name)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(taken); i++)
		if (!strcmp(name, taken[i]))
			return true;
	return false;
}

/* Logs that there is no elevator of a name, and which ones there are. */
static void refuse(const char *name)
{
	char known[HW_NAME_MAX], all[320] = "";
	size_t length = 0;
	int i;

	for (i = 0; hoistway_elevator_name(i, known, sizeof(known)) > 0; i++)
		length += scnprintf(all + length, sizeof(all) - length, " %s", known);
	pr_err("hoistway: elevators=: there is no elevator %s; there are%s\n", name, all);
}

static bool is_registered(const char *name)
{
	struct hw_type *type;

	list_for_each_entry(type, &types, list)
		if (!strcmp(type->name, name))
			return true;
	return false;
}

static int register_elevator(const char *name)
{
	struct hw_type *type;
	char known[HW_NAME_MAX];
	int index, error;

	if (!strncmp(name, "h-", 2))
		name += 2;
	index = hoistway_elevator_index(name, strlen(name));
	if (index < 0) {
		refuse(name);
		return -EINVAL;
	}
	error = hoistway_elevator_name(index, known, sizeof(known));
	if (error < 0)
		return -EINVAL;
	type = kzalloc(sizeof(*type), GFP_KERNEL);
	if (!type)
		return -ENOMEM;
	if (snprintf(type->name, sizeof(type->name), "%s%s", is_taken(known) ? "h-" : "", known) >= sizeof(type->name)) {
		kfree(type);
		return -EINVAL;
	}
	if (is_registered(type->name)) {
		pr_err("hoistway: elevators= names %s twice\n", type->name);
		kfree(type);
		return -EINVAL;
	}
	type->elevator = index | HOISTWAY_FIXED;
	type->limits_by_context = !strcmp(known, "paternoster");
	type->limits_depth = type->limits_by_context || !strcmp(known, "bfq") || !strcmp(known, "kyber") ||
			     !strcmp(known, "mq-deadline");
	type->per_hctx = !strcmp(known, "kyber");
	type->reserves = !strcmp(known, "cfq-bw");
	error = hw_tunables_init(type);
	if (error) {
		kfree(type);
		return error;
	}
	memcpy(&type->type.ops, &hw_ops, sizeof(hw_ops));
	if (!type->limits_depth)
		type->type.ops.limit_depth = NULL;
	type->type.icq_size = sizeof(struct hw_icq);
	type->type.icq_align = __alignof__(struct hw_icq);
	type->type.elevator_attrs = type->attrs;
	type->type.elevator_name = type->name;
	type->type.elevator_owner = THIS_MODULE;
#ifdef CONFIG_BLK_DEBUG_FS
	type->type.queue_debugfs_attrs = hw_debugfs_attrs;
#endif
	error = elv_register(&type->type);
	if (error) {
		pr_err("hoistway: %s cannot be registered (%d): another module may have an elevator of this name\n",
		       type->name, error);
		kfree(type);
		return error;
	}
	list_add_tail(&type->list, &types);
	return 0;
}

static void unregister_all(void)
{
	struct hw_type *type, *next;

	list_for_each_entry_safe(type, next, &types, list) {
		elv_unregister(&type->type);
		list_del(&type->list);
		kfree(type);
	}
}

static int register_listed(void)
{
	char *names = kstrdup(elevators, GFP_KERNEL), *rest = names, *name;
	int error = 0;

	if (!names)
		return -ENOMEM;
	while (!error && (name = strsep(&rest, ",")))
		if (*strim(name))
			error = register_elevator(strim(name));
	kfree(names);
	if (!error && list_empty(&types)) {
		pr_err("hoistway: elevators= names no elevator\n");
		error = -EINVAL;
	}
	return error;
}

static int __init hw_init(void)
{
	int error;

	if (hw_contexts_max < 16 || hw_contexts_max > 65536) {
		pr_err("hoistway: contexts=%u: 16 to 65536 would be right\n", hw_contexts_max);
		return -EINVAL;
	}
	if (hw_groups_max < 1 || hw_groups_max > 4096) {
		pr_err("hoistway: groups=%u: 1 to 4096 would be right\n", hw_groups_max);
		return -EINVAL;
	}
	error = hw_contexts_init();
	if (error)
		return error;
	error = hw_groups_init();
	if (error)
		goto no_groups;
	hw_record_init();
	error = register_listed();
	if (error)
		goto no_elevators;
	return 0;

no_elevators:
	unregister_all();
	hw_record_exit();
	hw_groups_exit();
no_groups:
	hw_contexts_exit();
	return error;
}

static void __exit hw_exit(void)
{
	unregister_all();
	hw_record_exit();
	hw_groups_exit();
	rcu_barrier();
	hw_contexts_exit();
}

module_init(hw_init);
module_exit(hw_exit);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Linux I/O schedulers of past and present kernels (hoistway)");
MODULE_VERSION(HW_VERSION);
