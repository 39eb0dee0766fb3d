// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reads the type information (BTF) of the kernel for which the module is built, and writes
 * config.h: the features of its block layer, and the layouts of the structures that
 * block_layer.h declares. Fails if a structure has a member, or an operation a prototype, that
 * this version of the module does not know.
 *
 *     check-btf RELEASE < BTF > config.h
 *
 * The format is described in the kernel's Documentation/bpf/btf.rst.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct header {
	uint16_t magic;
	uint8_t version, flags;
	uint32_t header_len, type_off, type_len, str_off, str_len;
};

struct type {
	uint32_t name, info, size; /* or the type referred to */
};

struct member {
	uint32_t name, type, offset;
};

enum {
	INT = 1, PTR, ARRAY, STRUCT, UNION, ENUM, FWD, TYPEDEF, VOLATILE, CONST, RESTRICT, FUNC, FUNC_PROTO, VAR, DATASEC,
	FLOAT, DECL_TAG, TYPE_TAG, ENUM64
};

static const char *release;
static unsigned char *file;
static size_t file_len;
static struct header *head;
static const struct type **types;
static uint32_t type_count;
static bool failed;

static void fail(const char *format, ...)
{
	va_list list;

	fprintf(stderr, "hoistway: kernel %s: ", release);
	va_start(list, format);
	vfprintf(stderr, format, list);
	va_end(list);
	fputc('\n', stderr);
	failed = true;
}

static void stop(const char *what)
{
	fail("%s", what);
	exit(1);
}

static uint32_t kind_of(const struct type *type)
{
	return type->info >> 24 & 0x1f;
}

static uint32_t length_of(const struct type *type)
{
	return type->info & 0xffff;
}

static const char *name_at(uint32_t offset)
{
	if (offset >= head->str_len)
		stop("the BTF is damaged: a name lies outside its table");
	return (const char *)file + head->header_len + head->str_off + offset;
}

/* The bytes of an entry behind struct type. */
static size_t rest_of(const struct type *type)
{
	size_t length = length_of(type);

	switch (kind_of(type)) {
	case INT: case VAR: case DECL_TAG:
		return 4;
	case ARRAY:
		return 12;
	case STRUCT: case UNION: case DATASEC: case ENUM64:
		return 12 * length;
	case ENUM: case FUNC_PROTO:
		return 8 * length;
	case PTR: case FWD: case TYPEDEF: case VOLATILE: case CONST: case RESTRICT: case FUNC: case FLOAT: case TYPE_TAG:
		return 0;
	default:
		stop("the BTF has a kind of type that this version of hoistway does not know");
		return 0;
	}
}

static void read_types(void)
{
	unsigned char *at, *end;
	uint32_t room = 0;

	if (file_len < sizeof(*head) || head->magic != 0xeb9f)
		stop("the input is not BTF");
	if ((size_t)head->header_len + head->type_off + head->type_len > file_len ||
	    (size_t)head->header_len + head->str_off + head->str_len > file_len)
		stop("the BTF is cut off");
	at = file + head->header_len + head->type_off;
	end = at + head->type_len;
	type_count = 1; /* Type 0 is void. */
	while (at + sizeof(struct type) <= end) {
		if (type_count >= room) {
			room = room ? 2 * room : 1 << 17;
			types = realloc(types, room * sizeof(*types));
			if (!types)
				stop("no memory");
		}
		types[type_count++] = (const struct type *)at;
		at += sizeof(struct type) + rest_of((const struct type *)at);
	}
	if (at != end)
		stop("the BTF is damaged: its last type is cut off");
}

static const struct type *find_struct(const char *name)
{
	uint32_t i;

	for (i = 1; i < type_count; i++)
		if (kind_of(types[i]) == STRUCT && !strcmp(name_at(types[i]->name), name))
			return types[i];
	return NULL;
}

static const struct member *find_member(const struct type *type, const char *name)
{
	const struct member *members = (const struct member *)(type + 1);
	uint32_t i;

	for (i = 0; i < length_of(type); i++)
		if (!strcmp(name_at(members[i].name), name))
			return &members[i];
	return NULL;
}

static const struct type *type_at(uint32_t id)
{
	if (id >= type_count)
		stop("the BTF is damaged: a type lies outside its table");
	return id ? types[id] : NULL;
}

static const struct type *plain(uint32_t id)
{
	const struct type *type = type_at(id);

	while (type && (kind_of(type) == CONST || kind_of(type) == VOLATILE || kind_of(type) == RESTRICT ||
			kind_of(type) == TYPE_TAG))
		type = type_at(type->size);
	return type;
}

/* Appends a type in short C: without const, and structures by name. */
static void render(char *to, size_t room, uint32_t id)
{
	const struct type *type = plain(id);
	size_t used = strlen(to);
	uint32_t i;

	if (used + 64 > room)
		return;
	if (!type) {
		strcat(to, "void");
		return;
	}
	switch (kind_of(type)) {
	case PTR:
		render(to, room, type->size);
		if (!plain(type->size) || kind_of(plain(type->size)) != FUNC_PROTO)
			strncat(to, "*", room - strlen(to) - 1);
		break;
	case FUNC_PROTO:
		render(to, room, type->size);
		strncat(to, "(", room - strlen(to) - 1);
		for (i = 0; i < length_of(type); i++) {
			/* Parameters are pairs of a name and a type. */
			const uint32_t *pair = (const uint32_t *)(type + 1) + 2 * i;

			if (i)
				strncat(to, ",", room - strlen(to) - 1);
			render(to, room, pair[1]);
		}
		strncat(to, ")", room - strlen(to) - 1);
		break;
	default:
		snprintf(to + used, room - used, "%s", name_at(type->name));
	}
}

/* --- what this version of the module knows --- */

/* A prototype of an operation; `feature` is defined if the kernel has this one. */
static const struct prototype {
	const char *member, *text, *feature;
} prototypes[] = {
	{ "init_sched", "int(request_queue*,elevator_type*)", NULL },
	{ "init_sched", "int(request_queue*,elevator_queue*)", "HW_INIT_SCHED_QUEUE" },
	{ "exit_sched", "void(elevator_queue*)", NULL },
	{ "init_hctx", "int(blk_mq_hw_ctx*,unsigned int)", NULL },
	{ "exit_hctx", "void(blk_mq_hw_ctx*,unsigned int)", NULL },
	{ "depth_updated", "void(blk_mq_hw_ctx*)", NULL },
	{ "depth_updated", "void(request_queue*)", "HW_DEPTH_UPDATED_QUEUE" },
	{ "alloc_sched_data", "void*(request_queue*)", "HW_ALLOC_SCHED_DATA" },
	{ "free_sched_data", "void(void*)", NULL },
	{ "allow_merge", "bool(request_queue*,request*,bio*)", NULL },
	{ "bio_merge", "bool(request_queue*,bio*,unsigned int)", NULL },
	{ "request_merge", "int(request_queue*,request**,bio*)", NULL },
	{ "request_merged", "void(request_queue*,request*,elv_merge)", NULL },
	{ "requests_merged", "void(request_queue*,request*,request*)", NULL },
	{ "limit_depth", "void(blk_opf_t,blk_mq_alloc_data*)", NULL },
	{ "prepare_request", "void(request*)", NULL },
	{ "finish_request", "void(request*)", NULL },
	{ "insert_requests", "void(blk_mq_hw_ctx*,list_head*,bool)", NULL },
	{ "insert_requests", "void(blk_mq_hw_ctx*,list_head*,blk_insert_t)", "HW_INSERT_FLAGS" },
	{ "dispatch_request", "request*(blk_mq_hw_ctx*)", NULL },
	{ "has_work", "bool(blk_mq_hw_ctx*)", NULL },
	{ "completed_request", "void(request*,u64)", NULL },
	{ "requeue_request", "void(request*)", NULL },
	{ "former_request", "request*(request_queue*,request*)", NULL },
	{ "next_request", "request*(request_queue*,request*)", NULL },
	{ "init_icq", "void(io_cq*)", NULL },
	{ "exit_icq", "void(io_cq*)", NULL },
};

/* A structure, and its members that block_layer.h declares; those after '?' may be missing. */
static const struct layout {
	const char *name;
	/* The module fills in the whole structure, so its size and all members must be known. */
	bool whole;
	const char *members[24];
} layouts[] = {
	{ "elevator_type", true,
	  { "icq_cache", "ops", "icq_size", "icq_align", "elevator_attrs", "elevator_name", "elevator_alias",
	    "?elevator_features", "elevator_owner", "queue_debugfs_attrs", "hctx_debugfs_attrs", "icq_cache_name",
	    "list" } },
	{ "elevator_queue", false, { "type", "?et", "elevator_data", "kobj" } },
	{ "elv_fs_entry", true, { "attr", "show", "store" } },
	{ "blk_mq_debugfs_attr", true, { "name", "mode", "show", "write", "seq_ops" } },
	{ "blk_mq_alloc_data", false, { "q", "flags", "shallow_depth" } },
	{ "blkcg_policy_data", true, { "blkcg", "plid" } },
	{ "blkcg_policy", true,
	  { "plid", "dfl_cftypes", "legacy_cftypes", "cpd_alloc_fn", "?cpd_init_fn", "cpd_free_fn", "?cpd_bind_fn",
	    "pd_alloc_fn", "pd_init_fn", "pd_online_fn", "pd_offline_fn", "pd_free_fn", "pd_reset_stats_fn",
	    "pd_stat_fn" } },
};

/* Structures of the kernel's headers, whose sizes show whether the BTF is of the headers' kernel. */
static const char *const of_headers[] = { "request", "request_queue", "blk_mq_hw_ctx", "bio" };

/* The features that follow from optional members. */
static const struct {
	const char *layout, *member, *feature;
} optional[] = {
	{ "elevator_type", "elevator_features", "HW_ELEVATOR_FEATURES" },
	{ "elevator_queue", "et", "HW_ELEVATOR_TAGS" },
	{ "blkcg_policy", "cpd_init_fn", "HW_CPD_INIT" },
};

static void write_operations(void)
{
	const struct type *ops = find_struct("elevator_mq_ops");
	const struct member *members;
	size_t p;
	uint32_t i;

	if (!ops)
		stop("its BTF has no elevators (struct elevator_mq_ops): is it a kernel with CONFIG_BLOCK?");
	members = (const struct member *)(ops + 1);
	for (i = 0; i < length_of(ops); i++) {
		const char *name = name_at(members[i].name);
		bool known = false, fits = false;
		char text[256] = "";

		render(text, sizeof(text), members[i].type);
		for (p = 0; p < sizeof(prototypes) / sizeof(prototypes[0]); p++) {
			if (strcmp(prototypes[p].member, name))
				continue;
			known = true;
			if (strcmp(prototypes[p].text, text))
				continue;
			fits = true;
			if (prototypes[p].feature)
				printf("#define %s 1\n", prototypes[p].feature);
		}
		if (!known)
			fail("struct elevator_mq_ops has the operation %s, which this version of hoistway does not know", name);
		else if (!fits)
			fail("the operation %s has the type %s, which this version of hoistway does not know", name, text);
		printf("#define HW_AT_elevator_mq_ops_%s %u\n", name, members[i].offset / 8);
	}
	printf("#define HW_SIZE_elevator_mq_ops %u\n", ops->size);
}

static bool is_listed(const struct layout *layout, const char *name)
{
	size_t i;

	for (i = 0; layout->members[i]; i++)
		if (!strcmp(layout->members[i] + (layout->members[i][0] == '?'), name))
			return true;
	return false;
}

static void write_layout(const struct layout *layout)
{
	const struct type *type = find_struct(layout->name);
	const struct member *members, *member;
	size_t i;

	if (!type) {
		fail("its BTF has no struct %s", layout->name);
		return;
	}
	members = (const struct member *)(type + 1);
	for (i = 0; layout->whole && i < length_of(type); i++)
		if (!is_listed(layout, name_at(members[i].name)))
			fail("struct %s has the member %s, which this version of hoistway does not know", layout->name,
			     name_at(members[i].name));
	for (i = 0; layout->members[i]; i++) {
		bool may_lack = layout->members[i][0] == '?';
		const char *name = layout->members[i] + may_lack;

		member = find_member(type, name);
		if (member)
			printf("#define HW_AT_%s_%s %u\n", layout->name, name, (member->offset & 0xffffff) / 8);
		else if (!may_lack)
			fail("struct %s has no member %s", layout->name, name);
	}
	if (layout->whole)
		printf("#define HW_SIZE_%s %u\n", layout->name, type->size);
}

static void write_sizes(void)
{
	const struct type *type;
	size_t i;

	for (i = 0; i < sizeof(of_headers) / sizeof(of_headers[0]); i++) {
		type = find_struct(of_headers[i]);
		if (type)
			printf("#define HW_SIZE_%s %u\n", of_headers[i], type->size);
		else
			fail("its BTF has no struct %s", of_headers[i]);
	}
}

static bool has_function(const char *name)
{
	uint32_t i;

	for (i = 1; i < type_count; i++)
		if (kind_of(types[i]) == FUNC && !strcmp(name_at(types[i]->name), name))
			return true;
	return false;
}

static void write_features(void)
{
	const struct type *type;
	const struct member *member;
	size_t i;

	for (i = 0; i < sizeof(optional) / sizeof(optional[0]); i++) {
		type = find_struct(optional[i].layout);
		if (type && find_member(type, optional[i].member))
			printf("#define %s 1\n", optional[i].feature);
	}
	if (has_function("hrtimer_setup"))
		puts("#define HW_HRTIMER_SETUP 1");
	/* The data of I/O policies of a control group, whose state must come first. */
	type = find_struct("blkcg");
	member = type ? find_member(type, "css") : NULL;
	if (member && member->offset == 0 && (member = find_member(type, "cpd")))
		printf("#define HW_BLKCG_CPD %u\n", member->offset / 8);
}

static void read_file(void)
{
	size_t room = 0, got;

	do {
		if (file_len == room) {
			room = room ? 2 * room : 1 << 23;
			file = realloc(file, room);
			if (!file)
				stop("no memory");
		}
		got = fread(file + file_len, 1, room - file_len, stdin);
		file_len += got;
	} while (got);
	head = (struct header *)file;
}

int main(int argc, char **argv)
{
	size_t i;

	if (argc != 2) {
		fputs("usage: check-btf RELEASE < BTF > config.h\n", stderr);
		return 2;
	}
	release = argv[1];
	read_file();
	read_types();
	printf("/* Made by check-btf from the BTF of kernel %s. */\n", release);
	write_operations();
	for (i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++)
		write_layout(&layouts[i]);
	write_sizes();
	write_features();
	if (failed)
		fprintf(stderr, "hoistway: the module is not built; docs/kernel.md lists the kernels that it supports\n");
	return failed || fflush(stdout) ? 1 : 0;
}
