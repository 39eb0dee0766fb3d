// SPDX-License-Identifier: GPL-2.0-only
/*
 * The tunables of an elevator as files in queue/iosched/, under the kernel's names and in the
 * kernel's units. The block layer does not say which file is read, so each has functions of its
 * own.
 */
#include <linux/kernel.h>
#include <linux/slab.h>

#include "tunables.h"
#include "core_calls.h"
#include "reservations.h"
#include "settle.h"

static ssize_t show(struct elevator_queue *eq, char *page, unsigned int index)
{
	struct hw_queue *hw = eq->elevator_data;
	struct hoistway_tunable tunable;
	unsigned long flags;
	int status;

	spin_lock_irqsave(&hw->lock, flags);
	status = hoistway_tunable(hw->core, index, &tunable);
	spin_unlock_irqrestore(&hw->lock, flags);
	return status < 0 ? -EINVAL : sysfs_emit(page, "%lld\n", tunable.value);
}

static ssize_t store(struct elevator_queue *eq, const char *page, size_t count, unsigned int index)
{
	struct hw_queue *hw = eq->elevator_data;
	unsigned long flags;
	int status, run;
	s64 value;

	status = kstrtos64(page, 10, &value);
	if (status)
		return status;
	spin_lock_irqsave(&hw->lock, flags);
	status = hw_core_set_tunable(hw, index, value);
	run = hw_settle(hw, HOISTWAY_OK);
	spin_unlock_irqrestore(&hw->lock, flags);
	hw_run(hw, run);
	if (status == HOISTWAY_OUT_OF_RANGE)
		return -ERANGE;
	return status < 0 ? -EINVAL : count;
}

#define TUNABLE(n)								\
	static ssize_t show_##n(struct elevator_queue *eq, char *page)		\
	{									\
		return show(eq, page, n);					\
	}									\
	static ssize_t store_##n(struct elevator_queue *eq, const char *page, size_t count) \
	{									\
		return store(eq, page, count, n);				\
	}
#define FUNCTIONS(n) { .show = show_##n, .store = store_##n }
#define EIGHT(what, a, b, c, d, e, f, g, h, between) \
	what(a) between what(b) between what(c) between what(d) between what(e) between what(f) between what(g) between what(h)
#define NOTHING
#define A_COMMA ,

EIGHT(TUNABLE, 0, 1, 2, 3, 4, 5, 6, 7, NOTHING)
EIGHT(TUNABLE, 8, 9, 10, 11, 12, 13, 14, 15, NOTHING)
EIGHT(TUNABLE, 16, 17, 18, 19, 20, 21, 22, 23, NOTHING)
EIGHT(TUNABLE, 24, 25, 26, 27, 28, 29, 30, 31, NOTHING)
EIGHT(TUNABLE, 32, 33, 34, 35, 36, 37, 38, 39, NOTHING)
EIGHT(TUNABLE, 40, 41, 42, 43, 44, 45, 46, 47, NOTHING)

static const struct elv_fs_entry functions[HW_TUNABLES_MAX] = {
	EIGHT(FUNCTIONS, 0, 1, 2, 3, 4, 5, 6, 7, A_COMMA),
	EIGHT(FUNCTIONS, 8, 9, 10, 11, 12, 13, 14, 15, A_COMMA),
	EIGHT(FUNCTIONS, 16, 17, 18, 19, 20, 21, 22, 23, A_COMMA),
	EIGHT(FUNCTIONS, 24, 25, 26, 27, 28, 29, 30, 31, A_COMMA),
	EIGHT(FUNCTIONS, 32, 33, 34, 35, 36, 37, 38, 39, A_COMMA),
	EIGHT(FUNCTIONS, 40, 41, 42, 43, 44, 45, 46, 47, A_COMMA),
};

/* Reads the names of an elevator's tunables from a small queue of the core. */
int hw_tunables_init(struct hw_type *type)
{
	struct hoistway_capacity sizes = { .requests = 4, .contexts = 1 };
	size_t size = hoistway_fixed_queue_size(&sizes, type->elevator);
	struct hoistway_tunable tunable;
	struct hoistway_config config;
	struct hoistway_queue *core;
	int i, count;

	core = size ? kvzalloc(PAGE_ALIGN(size), GFP_KERNEL) : NULL;
	if (!core)
		return -ENOMEM;
	hoistway_config_default(&config);
	if (hoistway_queue_init(core, PAGE_ALIGN(size), &sizes, &config, type->elevator, 0) < 0) {
		kvfree(core);
		return -EINVAL;
	}
	count = min_t(int, hoistway_tunable_count(core), HW_TUNABLES_MAX);
	for (i = 0; i < count; i++) {
		if (hoistway_tunable(core, i, &tunable) != HOISTWAY_OK)
			break;
		snprintf(type->tunables[i].name, sizeof(type->tunables[i].name), "%.*s", (int)tunable.name_len,
			 tunable.name);
		type->tunables[i].default_value = tunable.default_value;
		type->tunables[i].min = tunable.min;
		type->tunables[i].max = tunable.max;
		type->attrs[i] = functions[i];
		type->attrs[i].attr.name = type->tunables[i].name;
		type->attrs[i].attr.mode = 0644;
		sysfs_attr_init(&type->attrs[i].attr);
	}
	type->tunable_count = i;
	if (type->reserves) {
		struct elv_fs_entry *attr = &type->attrs[i];

		attr->attr.name = "reservations";
		attr->attr.mode = 0644;
		sysfs_attr_init(&attr->attr);
		attr->show = hw_reservations_show;
		attr->store = hw_reservations_store;
	}
	kvfree(core);
	return 0;
}
