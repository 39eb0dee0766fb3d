/*
 * An elevator inside a program that does its own I/O, such as a storage engine or a database.
 *
 * Requests wait in the elevator, which decides their order, and I/O threads execute them. All
 * functions may be called from any thread.
 */
#ifndef IO_SCHEDULER_H
#define IO_SCHEDULER_H

#include <hoistway.h>

/* A read or write, as the first member of what the caller needs for it. It must not change until it
 * has completed. */
struct io_request {
	struct hoistway_bio bio; /* io_scheduler_submit() sets the token */
};

struct io_scheduler_config {
	const char *elevator;
	uint32_t requests;   /* at most so many are pending at the same time */
	uint32_t contexts;   /* and so many contexts are open */
	unsigned io_threads; /* requests that are executed at the same time */
	/* Both are called by an I/O thread: to execute a request, and when it has completed. */
	void (*execute)(struct io_request *request);
	void (*completed)(struct io_request *request);
};

/* Creates a scheduler and starts its threads. Returns NULL if no elevator has the name, without
 * memory or without threads. */
struct io_scheduler *io_scheduler_create(const struct io_scheduler_config *config);

/* Begins a stream of requests, with a number and a priority from 0, the highest, to 7. */
hoistway_context io_scheduler_open(struct io_scheduler *scheduler, uint32_t number, uint32_t level);

/* Ends a stream whose requests have completed. */
void io_scheduler_close(struct io_scheduler *scheduler, hoistway_context context);

void io_scheduler_submit(struct io_scheduler *scheduler, struct io_request *request);

/* Ends the threads and frees the scheduler. All requests must have completed. */
void io_scheduler_destroy(struct io_scheduler *scheduler);

#endif
