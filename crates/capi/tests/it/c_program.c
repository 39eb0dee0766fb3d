/* Runs a few requests through the C interface and prints each result; c_program.rs has the expected output. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hoistway.h"

#define MS 1000000ull

static struct hoistway_queue *make(const char *elevator, uint32_t events, struct hoistway_config *config)
{
	struct hoistway_capacity capacity = {.requests = 16, .contexts = 4, .merged_bios = 16, .events = events, .groups = 3};
	size_t size = hoistway_queue_size(&capacity);
	struct hoistway_queue *queue = aligned_alloc(HOISTWAY_ALIGNMENT, size);
	int32_t index = hoistway_elevator_index(elevator, strlen(elevator));
	int32_t made = hoistway_queue_init(queue, size, &capacity, config, (uint32_t)index, 0);
	int32_t refused = hoistway_queue_init(queue, size - 1, &capacity, config, (uint32_t)index, 0);
	printf("%s is found %d, init %d, too small %d\n", elevator, index >= 0, made, refused);
	return queue;
}

static hoistway_context process(struct hoistway_queue *queue, uint32_t pid)
{
	hoistway_context context = 0;
	if (hoistway_context_create(queue, pid, HOISTWAY_CLASS_NONE, 0, 0, &context) != HOISTWAY_OK)
		printf("no context for %u\n", pid);
	return context;
}

static void submit(struct hoistway_queue *queue, hoistway_context context, uint64_t token, uint64_t sector, uint64_t now_ns)
{
	struct hoistway_bio bio = {.token = token, .context = context, .sector = sector, .sectors = 8, .op = HOISTWAY_READ};
	struct hoistway_submitted submitted;
	int32_t status = hoistway_submit(queue, &bio, now_ns, &submitted);
	printf("submit %d what %u\n", status, submitted.what);
}

/* Serves all requests, each in 5 ms, and waits for timers, until no request is queued. */
static uint64_t serve(struct hoistway_queue *queue, uint64_t now_ns)
{
	for (;;) {
		struct hoistway_request request;
		struct hoistway_work work;
		uint64_t tokens[16], at_ns;
		uint32_t count = 0;
		int32_t status = hoistway_next_for(queue, 0, now_ns, &request);
		if (status == HOISTWAY_EMPTY)
			return now_ns;
		if (status == HOISTWAY_WAIT) {
			if (hoistway_next_timer(queue, &at_ns) != HOISTWAY_OK) {
				printf("stuck\n");
				return now_ns;
			}
			now_ns = at_ns > now_ns ? at_ns : now_ns;
			hoistway_timer(queue, now_ns);
		} else {
			printf("%u %llu+%u at %llu ms\n", request.pid, (unsigned long long)request.sector, request.sectors,
			       (unsigned long long)(now_ns / MS));
			now_ns += 5 * MS;
			if (hoistway_complete(queue, request.id, now_ns, tokens, request.bios_max - 1, &count) != HOISTWAY_TOO_SMALL)
				printf("a short array was accepted\n");
			if (hoistway_complete(queue, request.id, now_ns, tokens, 16, &count) < 0)
				printf("not completed\n");
			printf(" tokens");
			for (uint32_t i = 0; i < count; i++)
				printf(" %llu", (unsigned long long)tokens[i]);
			printf("; again %d\n", hoistway_complete(queue, request.id, now_ns, tokens, 16, &count));
		}
		while (hoistway_next_work(queue, &work) == HOISTWAY_OK)
			;
	}
}

static void tunables(struct hoistway_queue *queue)
{
	struct hoistway_tunable tunable;
	int32_t set = hoistway_set_tunable_by_name(queue, "slice_idle", 10, 4);
	int32_t found = 0;
	for (int32_t i = 0; i < hoistway_tunable_count(queue); i++)
		if (hoistway_tunable(queue, (uint32_t)i, &tunable) == HOISTWAY_OK && tunable.name_len == 10 &&
		    !memcmp(tunable.name, "slice_idle", 10)) {
			found = 1;
			printf("slice_idle %lld of %lld\n", (long long)tunable.value, (long long)tunable.default_value);
			printf("out of range %d\n", hoistway_set_tunable(queue, (uint32_t)i, tunable.min - 1));
		}
	int32_t unknown = hoistway_set_tunable_by_name(queue, "sloth", 5, 1);
	printf("set %d found %d unknown %d\n", set, found, unknown);
}

static void errors(struct hoistway_queue *queue, hoistway_context context)
{
	struct hoistway_bio bio = {.token = 1, .context = context, .sector = 0, .sectors = 0, .op = HOISTWAY_READ};
	struct hoistway_submitted submitted;
	printf("no sectors %d\n", hoistway_submit(queue, &bio, 0, &submitted));
	bio.sectors = 8;
	bio.flags = 64;
	printf("unknown flag %d\n", hoistway_submit(queue, &bio, 0, &submitted));
	bio.flags = 0;
	bio.context = context + 1;
	printf("unknown context %d\n", hoistway_submit(queue, &bio, 0, &submitted));
	printf("null %d %d %d\n", hoistway_submit(NULL, &bio, 0, &submitted), hoistway_submit(queue, NULL, 0, &submitted),
	       hoistway_next(queue, 0, NULL));
	printf("unknown elevator %d %d\n", hoistway_elevator_index("lift", 4), hoistway_switch(queue, 1000, 0));
}

/* A tree of two groups below the root, with a process in the lower one. */
static void groups(struct hoistway_queue *queue, hoistway_context context)
{
	hoistway_group root, upper = 0, lower = 0, third = 0;
	hoistway_group_root(queue, &root);
	int32_t heavy = hoistway_group_create(queue, root, HOISTWAY_WEIGHT_MAX + 1, 1, 0, &upper);
	int32_t made = hoistway_group_create(queue, root, HOISTWAY_WEIGHT_MAX, HOISTWAY_WEIGHT_MIN, 0, &upper);
	int32_t below = hoistway_group_create(queue, upper, HOISTWAY_WEIGHT_DEFAULT, 10, 0, &lower);
	printf("groups %d %d %d, one too many %d\n", heavy, made, below, hoistway_group_create(queue, root, 1, 1, 0, &third));
	printf("move %d, set weights %d, cpu %d\n", hoistway_context_move(queue, context, lower, 0),
	       hoistway_group_set_weights(queue, upper, 500, 500, 0), hoistway_context_set_cpu(queue, context, 3));
	printf("remove %d %d\n", hoistway_group_remove(queue, upper, 0), hoistway_group_remove(queue, lower, 0));
	hoistway_context_move(queue, context, root, 0);
	int32_t first = hoistway_group_remove(queue, lower, 0), second = hoistway_group_remove(queue, upper, 0);
	printf("empty %d %d, twice %d\n", first, second, hoistway_group_remove(queue, upper, 0));
}

int main(void)
{
	struct hoistway_config config;
	hoistway_config_default(&config);
	config.plugging = 0;

	struct hoistway_queue *noop = make("noop", 4, &config);
	hoistway_context one = process(noop, 1);
	errors(noop, one);
	submit(noop, one, 10, 500, 0);
	submit(noop, one, 11, 100, 0);
	submit(noop, one, 12, 508, 0);
	uint64_t now_ns = serve(noop, 0);
	groups(noop, one);
	int32_t to = hoistway_elevator_index("cfq-v3", 6);
	int32_t switched = hoistway_switch(noop, (uint32_t)to, now_ns);
	printf("switch %d, done %d\n", switched, hoistway_elevator(noop) == to);
	tunables(noop);
	struct hoistway_event event = {0};
	int events = 0;
	while (hoistway_next_event(noop, &event) == HOISTWAY_OK)
		events++;
	printf("%d events, the last of kind %u; dropped more: %d\n", events, event.kind, hoistway_events_dropped(noop) > 0);

	struct hoistway_queue *cfq = make("cfq-v3", 0, &config);
	hoistway_context a = process(cfq, 1), b = process(cfq, 2);
	submit(cfq, a, 20, 1000, 0);
	submit(cfq, b, 21, 2000, 0);
	submit(cfq, a, 22, 1100, 0);
	serve(cfq, 0);
	int32_t exited = hoistway_context_exit(cfq, a, 100 * MS);
	printf("exit %d, twice %d\n", exited, hoistway_context_exit(cfq, a, 100 * MS));

	struct hoistway_queue *bw = make("cfq-bw", 0, &config);
	hoistway_context c = process(bw, 3), d = process(bw, 4);
	struct hoistway_reservation wanted = {.bytes_per_second = 5000000};
	uint64_t headroom = 0;
	printf("reserve %d, from cfq-v3 %d\n", hoistway_reserve(bw, c, &wanted, 0, &headroom),
	       hoistway_reserve(cfq, b, &wanted, 0, &headroom));
	printf("no capacity %d", hoistway_reserve(bw, d, &wanted, 0, &headroom));
	printf(", headroom %llu\n", (unsigned long long)headroom);
	wanted.bytes_per_second = 0;
	printf("bad rate %d, stale %d, null %d\n", hoistway_reserve(bw, c, &wanted, 0, &headroom),
	       hoistway_reserve(bw, d + 1, &wanted, 0, &headroom), hoistway_reserve(bw, d, NULL, 0, &headroom));
	submit(bw, d, 30, 100, 0);
	submit(bw, c, 31, 200, 0);
	serve(bw, 0);
	int32_t released = hoistway_release(bw, c, 100 * MS);
	printf("release %d, stale %d\n", released, hoistway_release(bw, d + 1, 100 * MS));
	free(bw);
	free(noop);
	free(cfq);
	return 0;
}
