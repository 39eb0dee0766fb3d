/* Merges that the caller makes, through the C interface; host_merge.rs has the expected output. */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hoistway.h"

static hoistway_request_id insert(struct hoistway_queue *queue, struct hoistway_bio bio)
{
	struct hoistway_submitted submitted;
	int32_t status = hoistway_submit(queue, &bio, 0, &submitted);
	printf("submit %d what %u\n", status, submitted.what);
	return submitted.request;
}

int main(void)
{
	printf("neighbour %zu: %zu %zu %zu %zu\n", sizeof(struct hoistway_neighbour), offsetof(struct hoistway_neighbour, request),
	       offsetof(struct hoistway_neighbour, token), offsetof(struct hoistway_neighbour, side),
	       offsetof(struct hoistway_neighbour, reserved));
	printf("extent %zu: %zu %zu %zu\n", sizeof(struct hoistway_extent), offsetof(struct hoistway_extent, sector),
	       offsetof(struct hoistway_extent, sectors), offsetof(struct hoistway_extent, reserved));

	struct hoistway_capacity capacity = {.requests = 16, .contexts = 4, .merged_bios = 0, .events = 0, .groups = 1};
	struct hoistway_config config;
	hoistway_config_default(&config);
	config.layer = 5; /* 6.1 */
	config.merging = 0;
	config.plugging = 0;
	config.nr_requests = 0;
	uint32_t elevator = (uint32_t)hoistway_elevator_index("mq-deadline", 11) | HOISTWAY_FIXED;
	size_t size = hoistway_fixed_queue_size(&capacity, elevator);
	struct hoistway_queue *queue = aligned_alloc(HOISTWAY_ALIGNMENT, size);
	printf("smaller %d, init %d\n", size < hoistway_queue_size(&capacity),
	       hoistway_queue_init(queue, size, &capacity, &config, elevator, 0));
	printf("switch %d\n", hoistway_switch(queue, 0, 0));
	hoistway_context context = 0;
	hoistway_context_create(queue, 1, HOISTWAY_CLASS_NONE, 0, 0, &context);

	struct hoistway_bio bio = {.token = 1, .context = context, .sector = 100, .sectors = 8, .op = HOISTWAY_READ};
	hoistway_request_id lower = insert(queue, bio);
	bio.token = 2;
	bio.sector = 116;
	hoistway_request_id upper = insert(queue, bio);

	/* The bio in front of the upper request. */
	struct hoistway_neighbour found;
	bio.token = 3;
	bio.sector = 112;
	bio.sectors = 4;
	printf("prepare %d, at insertion %d\n", hoistway_prepare_merge(queue, &bio, 0, &found), hoistway_joins_at_insert(queue));
	int32_t status = hoistway_find_merge(queue, &bio, 0, &found);
	printf("find %d: token %llu side %u, the upper one %d\n", status, (unsigned long long)found.token, found.side,
	       found.request == upper);
	printf("allowed %d\n", hoistway_allows_merge(queue, upper, &bio, 0));
	struct hoistway_extent grown = {.sector = 112, .sectors = 12};
	printf("growth %d\n", hoistway_record_growth(queue, upper, HOISTWAY_FRONT, &grown, 0));
	bio.sector = 108;
	status = hoistway_find_merge(queue, &bio, 0, &found);
	printf("find %d: token %llu side %u\n", status, (unsigned long long)found.token, found.side);

	/* A request at the end of the lower one, before its insertion. */
	bio.token = 4;
	grown = (struct hoistway_extent){.sector = 100, .sectors = 12};
	printf("at insertion %d\n", hoistway_record_join_at_insert(queue, lower, &grown, &bio, 0));
	status = hoistway_neighbour(queue, lower, HOISTWAY_BACK, &found);
	printf("neighbour %d: token %llu\n", status, (unsigned long long)found.token);
	printf("no neighbour %d\n", hoistway_neighbour(queue, lower, HOISTWAY_FRONT, &found));
	struct hoistway_extent extents[2] = {{.sector = 100, .sectors = 24}, {.sector = 112, .sectors = 12}};
	status = hoistway_record_join(queue, lower, upper, extents, 0);
	printf("join %d, again %d\n", status, hoistway_record_join(queue, lower, upper, extents, 0));
	printf("depth %d\n", hoistway_depth_limit(queue, 64, &bio));

	struct hoistway_request request;
	uint64_t tokens[2] = {0, 0};
	uint32_t count;
	printf("listed %d\n", hoistway_dispatched(queue, tokens, 2));
	status = hoistway_next(queue, 0, &request);
	printf("next %d: %llu at %llu+%u\n", status, (unsigned long long)request.token, (unsigned long long)request.sector,
	       request.sectors);
	hoistway_requeue(queue, request.id, 0);
	status = hoistway_dispatched(queue, tokens, 2);
	printf("listed %d: %llu\n", status, (unsigned long long)tokens[0]);
	printf("refusal %d, growth %d\n", hoistway_record_refusal(queue, request.id),
	       hoistway_record_growth(queue, request.id, HOISTWAY_BACK, &grown, 0));
	hoistway_next(queue, 0, &request);
	status = hoistway_complete(queue, request.id, 0, tokens, 2, &count);
	printf("complete %d: %u of them, %llu\n", status, count, (unsigned long long)tokens[0]);
	printf("next %d\n", hoistway_next(queue, 0, &request));
	free(queue);
	return 0;
}
