export interface paths {
    "/chat": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Create a chat completion
         * @description With `entity_id` the stored history precedes the submitted messages, and the answer is stored. Unknown fields are ignored and listed in `X-Ignored-Fields`. This endpoint has a limit of its own of 120 requests a minute.
         */
        post: operations["createChat"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/chat/stream": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Stream a chat completion
         * @description Takes the body of `POST /chat`. This endpoint has a limit of its own of 60 requests a minute.
         */
        post: operations["streamChat"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/chat/completions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Create a chat completion with an OpenAI client
         * @description Takes what the official `openai` client sends. Complete answers need the scope `chat`, streamed ones (`stream: true`) `chat.stream`; each counts against the limit of the endpoint for which it stands.
         */
        post: operations["createChatCompletion"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/requests": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List chat requests
         * @description Requests are listed a second after their end, without any text, and kept for a time that the operator sets. Of refused ones, the first few of each key, code and minute are listed.
         */
        get: operations["listChatRequests"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/chat/stream/{request_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Resume a stream from any event
         * @description The same bytes as the first time, while the request is in progress and for 15 minutes after its end (24 hours with an `Idempotency-Key` or asynchronously). It does not count against the limit of the key, which allows 600 look-ups a minute besides.
         */
        get: operations["resumeChatStream"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/chat/{request_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Retrieve a chat request
         * @description With its answer, for 15 minutes after its end (24 hours with an `Idempotency-Key` or asynchronously). It does not count against the limit of the key, which allows 600 look-ups a minute besides.
         */
        get: operations["getChatRequest"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/chat/{request_id}/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Cancel a chat request
         * @description A request that has ended stays as it is. One that has text ends with `finish_reason: "cancelled"` and is charged for what was generated; one without text is not charged, and a caller who waits for it gets 409 `conflict`.
         */
        post: operations["cancelChatRequest"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/embeddings": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Create embeddings
         * @description In the form of OpenAI's endpoint; the tier `embedding` serves it. Inputs are moderated, metered and limited as the messages of a chat are; an answer has no tokens of its own.
         */
        post: operations["createEmbeddings"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/moderations": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Moderate texts
         * @description The verdict that the service's own moderation gives on a message, by the tenant's settings, in the form of OpenAI's endpoint. It costs no credits and counts as a request.
         */
        post: operations["createModeration"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/models": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List models
         * @description The tiers and the names that the administrator publishes, in the form of OpenAI's list. Every valid key may read it.
         */
        get: operations["listModels"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/models/{model}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Retrieve a model
         * @description In the form of OpenAI's model. Every valid key may read it.
         */
        get: operations["getModel"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/batches": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List batches */
        get: operations["listBatches"];
        put?: never;
        /**
         * Create a batch
         * @description As JSON, or as NDJSON with one request a line; at most 50 MiB. Each is a request of `POST /chat`, or in the form of OpenAI's batches (`method`, `url`, `body`) of `POST /chat/completions`, with its own id and charge. An invalid request has an error as its result; the batch is refused only for what concerns it as a whole, or where no request is valid. An account may call this 10 times a minute with all its keys, and write 200 MiB; refused calls count, too.
         */
        post: operations["createBatch"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/batches/{batch_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Retrieve a batch */
        get: operations["getBatch"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/batches/{batch_id}/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Cancel a batch
         * @description Requests in progress run to their end; the others are not sent. A batch that has ended stays as it is.
         */
        post: operations["cancelBatch"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/batches/{batch_id}/results": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Retrieve the results of a batch
         * @description One result a line, in the order of the requests, with `response` or `error`. Results can be read while other requests are in progress. They are kept for 30 days.
         */
        get: operations["getBatchResults"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List API keys
         * @description A test key lists test keys only.
         */
        get: operations["listKeys"];
        put?: never;
        /**
         * Create an API key
         * @description A key never grants more than the key that creates it has: mode, scopes, limits and expiry must be within its own (403). A tenant has at most 100 active keys (409), and all its keys together may call this 200 times a minute. A replayed answer omits `value`.
         */
        post: operations["createKey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/key": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Retrieve the calling key
         * @description Every valid key may read its own settings: scopes, mode, limits and expiry.
         */
        get: operations["getCallingKey"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/keys/{key_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Retrieve an API key */
        get: operations["getKey"];
        put?: never;
        post?: never;
        /**
         * Revoke an API key
         * @description The key stops working everywhere within a second. A revoked key stays in the list.
         */
        delete: operations["revokeKey"];
        options?: never;
        head?: never;
        /**
         * Update an API key
         * @description `null` removes a setting: no expiry, the tenant's limits. A key keeps its mode; a change that widens it must be within the calling key's own.
         */
        patch: operations["updateKey"];
        trace?: never;
    };
    "/keys/{key_id}/rotate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Rotate an API key
         * @description Needs no body. The previous value keeps working for `grace_seconds`.
         */
        post: operations["rotateKey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/entities": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List entities */
        get: operations["listEntities"];
        put?: never;
        /**
         * Create an entity
         * @description A chat request with an unknown `entity_id` creates the entity as well.
         */
        post: operations["createEntity"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/entities/{entity_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Retrieve an entity */
        get: operations["getEntity"];
        /**
         * Create or replace an entity
         * @description A field that the body omits is removed; the history stays.
         */
        put: operations["putEntity"];
        post?: never;
        /** Delete an entity with its history */
        delete: operations["deleteEntity"];
        options?: never;
        head?: never;
        /**
         * Update an entity
         * @description `null` removes a field; a field that the body omits stays.
         */
        patch: operations["updateEntity"];
        trace?: never;
    };
    "/entities/{entity_id}/history": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the messages of an entity's history
         * @description The 50 most recent messages.
         */
        get: operations["getEntityHistory"];
        put?: never;
        post?: never;
        /** Delete the history of an entity */
        delete: operations["deleteEntityHistory"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/usage": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Retrieve usage by time
         * @description By day since the beginning of the month, unless the parameters say otherwise. Unknown parameters are refused.
         */
        get: operations["getUsage"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/usage/requests": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List booked requests */
        get: operations["listUsageRequests"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/billing": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Retrieve balance and budget */
        get: operations["getBilling"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/billing/packages": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List credit packages */
        get: operations["listBillingPackages"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/billing/checkout": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Create a checkout
         * @description The buyer pays at `url`. A service that takes no payments answers 409. A test key cannot create a checkout (403). An account may call this 10 times a minute; a checkout that is not paid is kept for 31 days.
         */
        post: operations["createCheckout"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/billing/checkout/{checkout_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Retrieve a checkout */
        get: operations["getCheckout"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/billing/purchases": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List purchases */
        get: operations["listPurchases"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/billing/transactions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List transactions */
        get: operations["listTransactions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/webhooks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List webhooks */
        get: operations["listWebhooks"];
        put?: never;
        /**
         * Create a webhook
         * @description A tenant has at most 20 live and 20 test webhooks (409). A replayed answer omits `secret`.
         */
        post: operations["createWebhook"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/webhooks/{webhook_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Retrieve a webhook */
        get: operations["getWebhook"];
        put?: never;
        post?: never;
        /** Delete a webhook */
        delete: operations["deleteWebhook"];
        options?: never;
        head?: never;
        /**
         * Update a webhook
         * @description Disabling a webhook gives up the deliveries that wait for it.
         */
        patch: operations["updateWebhook"];
        trace?: never;
    };
    "/webhooks/{webhook_id}/rotate_secret": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Rotate the secret of a webhook
         * @description Needs no body. Both secrets sign for `grace_seconds`.
         */
        post: operations["rotateWebhookSecret"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/webhooks/{webhook_id}/test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Send a ping
         * @description Whatever the webhook has subscribed to; a disabled one is 409. A key may call this 10 times a minute.
         */
        post: operations["testWebhook"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/webhooks/{webhook_id}/deliveries": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List deliveries of a webhook
         * @description Deliveries are kept for 30 days.
         */
        get: operations["listDeliveries"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/webhooks/{webhook_id}/deliveries/{delivery_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Retrieve a delivery */
        get: operations["getDelivery"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/webhooks/{webhook_id}/deliveries/{delivery_id}/redeliver": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Redeliver an event
         * @description Succeeded or not; a delivery with an attempt in progress is 409. A key may call this 10 times a minute.
         */
        post: operations["redeliver"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/compliance/exports": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List exports */
        get: operations["listExports"];
        put?: never;
        /**
         * Create an export of data
         * @description Of one entity, or of the whole tenant: of live data with a live key, of test data with a test key. At most 5 of each are in progress (409). Files are kept for seven days, of each kind the latest 5 of the whole tenant and the latest 1000 of entities.
         */
        post: operations["createExport"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/compliance/exports/{export_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Retrieve an export */
        get: operations["getExport"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/compliance/exports/{export_id}/download": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Download an export
         * @description A ZIP archive; 409 until it is complete, 410 after it has expired.
         */
        get: operations["downloadExport"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/compliance/deletions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List deletions */
        get: operations["listDeletions"];
        put?: never;
        /**
         * Create a deletion of data
         * @description Of one entity, or of all entities; keys and settings stay, as does the ledger, without the ids of entities. A live key deletes live and test data, a test key test data alone. A tenant has at most one deletion of all entities and 20 of single ones in progress (409), and as many of test keys. A deletion of the same entity that has not begun is answered again.
         */
        post: operations["createDeletion"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/compliance/deletions/{deletion_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Retrieve a deletion */
        get: operations["getDeletion"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/compliance/audit_log": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List audit events
         * @description On keys, entities, credits, webhooks and the tenant. An entry is never changed or deleted. A live key sees what all keys have done, a test key what test keys have.
         */
        get: operations["listAuditLog"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/health/live": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Check liveness */
        get: operations["getLiveness"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/health/ready": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Check readiness */
        get: operations["getReadiness"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/openapi.json": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Retrieve this document */
        get: operations["getDocument"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export interface webhooks {
    "chat.completed": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** An answer was booked, a shortened one included. */
        post: operations["on:chat.completed"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "chat.failed": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** A request failed after it was accepted. */
        post: operations["on:chat.failed"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "batch.completed": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** All requests of a batch ended. */
        post: operations["on:batch.completed"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "credits.purchased": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** A payment was booked. */
        post: operations["on:credits.purchased"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "credits.low": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** A tenth or less is left of the balance after the latest grant or purchase. */
        post: operations["on:credits.low"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "credits.depleted": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** No credits are left. */
        post: operations["on:credits.depleted"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "budget.threshold_reached": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** A part of the monthly token budget is used. */
        post: operations["on:budget.threshold_reached"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "budget.exceeded": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** All of the monthly token budget is used. */
        post: operations["on:budget.exceeded"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "key.created": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** A key was created, by the API or an administrator. */
        post: operations["on:key.created"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "key.revoked": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** A key was revoked, by the API or an administrator. */
        post: operations["on:key.revoked"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "key.expiring": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** A key expires within seven days, and again within one. */
        post: operations["on:key.expiring"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "moderation.flagged": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Messages (`side: input`) or an answer (`output`) were flagged. */
        post: operations["on:moderation.flagged"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "entity.deleted": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** An entity was deleted. */
        post: operations["on:entity.deleted"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "compliance.export.completed": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** An export of data is ready for download. */
        post: operations["on:compliance.export.completed"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "compliance.deletion.completed": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** A deletion of data ended. */
        post: operations["on:compliance.deletion.completed"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "webhook.disabled": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** The service disabled a webhook; sent to your other webhooks. */
        post: operations["on:webhook.disabled"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    ping: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** `POST /webhooks/{webhook_id}/test` was called. */
        post: operations["on:ping"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export interface components {
    schemas: {
        ChatBody: {
            /** @description The conversation, oldest message first. */
            messages: ({
                /** @enum {string} */
                role: "user" | "assistant" | "system";
                content: string;
            } & {
                [key: string]: unknown;
            })[];
            /**
             * @description The model tier; the tenant's default tier where it is left out.
             * @enum {string}
             */
            model?: "mobius" | "oloid";
            /**
             * @description The most tokens that the answer may have.
             * @default 4096
             */
            max_tokens?: number;
            /** @description The caller's own id of the entity; with it the conversation is remembered. It must not have half a surrogate pair. */
            entity_id?: string;
            /** @description The subject of the conversation; else the entity's, else the tenant's. */
            subject?: string;
            /** @description The grade level; else the entity's, else the tenant's. */
            grade?: string;
            /** @description The caller's own data, returned as it was sent. At most 16384 bytes as JSON and 5 levels deep, without the key `__proto__` and numbers beyond 1.7976931348623157e+308. */
            metadata?: {
                [key: string]: unknown;
            };
            /**
             * @description The answer is a JSON object.
             * @default false
             */
            json_mode?: boolean;
            /** @description `tools` is read by `POST /chat/completions` only; send the request there, or leave it out. */
            tools?: unknown[] | null;
            /**
             * @description `tool_choice` is read by `POST /chat/completions` only; send the request there, or leave it out.
             * @enum {string|null}
             */
            tool_choice?: "none" | "auto" | null;
            /** @description `functions` is read by `POST /chat/completions` only; send the request there, or leave it out. */
            functions?: unknown[] | null;
            /**
             * @description `function_call` is read by `POST /chat/completions` only; send the request there, or leave it out.
             * @enum {string|null}
             */
            function_call?: "none" | "auto" | null;
            /** @description `audio` is not supported: this service answers in text; leave it out. */
            audio?: null;
            /**
             * @description `n` must be 1: a request has one answer; send it again for another.
             * @enum {number|null}
             */
            n?: 1 | null;
            /**
             * @description `logprobs` is read by `POST /chat/completions` only; send the request there, or leave it out.
             * @enum {boolean|null}
             */
            logprobs?: false | null;
            /**
             * @description `top_logprobs` is read by `POST /chat/completions` only; send the request there, or leave it out.
             * @enum {number|null}
             */
            top_logprobs?: 0 | null;
            /** @description `logit_bias` is read by `POST /chat/completions` only; send the request there, or leave it out. */
            logit_bias?: {
                [key: string]: unknown;
            } | null;
            /** @description `prediction` is read by `POST /chat/completions` only; send the request there, or leave it out. */
            prediction?: null;
            /** @description `web_search_options` is read by `POST /chat/completions` only; send the request there, or leave it out. */
            web_search_options?: null;
            /**
             * @description `top_k` is read by `POST /chat/completions` only; send the request there, or leave it out.
             * @enum {number|null}
             */
            top_k?: 0 | -1 | null;
            /**
             * @description `min_p` is read by `POST /chat/completions` only; send the request there, or leave it out.
             * @enum {number|null}
             */
            min_p?: 0 | null;
            /**
             * @description `repetition_penalty` is read by `POST /chat/completions` only; send the request there, or leave it out.
             * @enum {number|null}
             */
            repetition_penalty?: 1 | null;
            /** @description `structured_outputs` is read by `POST /chat/completions` only; send the request there, or leave it out. */
            structured_outputs?: null;
            /** @description `guided_json` is read by `POST /chat/completions` only; send the request there, or leave it out. */
            guided_json?: null;
            /** @description `guided_regex` is read by `POST /chat/completions` only; send the request there, or leave it out. */
            guided_regex?: null;
            /** @description `guided_choice` is read by `POST /chat/completions` only; send the request there, or leave it out. */
            guided_choice?: null;
            /** @description `guided_grammar` is read by `POST /chat/completions` only; send the request there, or leave it out. */
            guided_grammar?: null;
            /** @description `grammar` is read by `POST /chat/completions` only; send the request there, or leave it out. */
            grammar?: null;
            /** @description `max_completion_tokens` is read by `POST /chat/completions` only; here it is `max_tokens`. */
            max_completion_tokens?: null;
            /** @description `response_format` is read by `POST /chat/completions` only; here `json_mode` asks for a JSON object. */
            response_format?: ({
                /** @enum {string|null} */
                type?: "text" | null;
            } & {
                [key: string]: unknown;
            }) | null;
            /** @description `stop` is read by `POST /chat/completions` only; send the request there, or leave it out. */
            stop?: ("" | null) | ("" | null)[];
            /**
             * @description `stream` is not read here: the answer is complete; for a stream use `POST /chat/stream` or `POST /chat/completions`.
             * @enum {boolean|null}
             */
            stream?: false | null;
        } & {
            [key: string]: unknown;
        };
        ChatCompletion: {
            id: string;
            /** @constant */
            object: "chat.completion";
            /** @description Time at which the request was accepted, in Unix seconds. */
            created: number;
            /** @description The tier that served the request, or the published name under which it was asked for. */
            model: string;
            choices: {
                index: number;
                message: {
                    /** @constant */
                    role: "assistant";
                    /** @description Null where the model calls tools or refuses, and says no more. */
                    content: string | null;
                    /** @description The tools that the model calls. */
                    tool_calls?: {
                        /** @description In streams. */
                        index?: number;
                        id: string;
                        type: string;
                        function?: {
                            name: string;
                            /** @description JSON. */
                            arguments: string;
                        };
                    }[];
                    /** @description Why the model refuses to answer. */
                    refusal?: string;
                    /** @description What the model reasoned, where its provider shows that; or `reasoning`. */
                    reasoning_content?: string;
                };
                /** @enum {string} */
                finish_reason: "stop" | "length" | "tool_calls" | "content_filter" | "cancelled";
            }[];
            usage: components["schemas"]["Usage"];
            /** @description The request's own `metadata`. */
            metadata?: Record<string, never>;
            /** @description On `POST /chat/completions`, where the request was cancelled. */
            error?: components["schemas"]["ErrorObject"];
        };
        Usage: {
            prompt_tokens: number;
            completion_tokens: number;
            total_tokens: number;
            prompt_tokens_details?: {
                cached_tokens?: number;
                cache_write_tokens?: number;
                audio_tokens?: number;
            };
            completion_tokens_details?: {
                reasoning_tokens?: number;
                audio_tokens?: number;
            };
        };
        ErrorObject: {
            code: components["schemas"]["ErrorCode"];
            /** @description What to change, for people. */
            message: string;
            /** @enum {string} */
            type: "authentication_error" | "permission_error" | "billing_error" | "rate_limit_error" | "invalid_request_error" | "overloaded_error" | "timeout_error" | "not_found_error" | "api_error";
            /** @description The same as the header `X-Request-Id`. */
            request_id: string;
            /** @description The field or parameter at fault: `messages[3].content`. */
            param?: string;
            /** @description A detail for programs: `in_flight`. */
            reason?: string;
        };
        /**
         * @description - `missing_api_key` (401): No API key was sent.
         *     - `invalid_api_key` (401): The API key is unknown, malformed or revoked.
         *     - `expired_api_key` (401): The API key has expired.
         *     - `endpoint_not_allowed` (403): The key's scopes do not cover this endpoint, or the call would grant more than the key has.
         *     - `account_suspended` (403): An administrator has suspended the account.
         *     - `insufficient_credits` (402): The credits are used up, or held by requests in progress (`reason: "in_flight"`).
         *     - `budget_exceeded` (402): The monthly token budget is used up, or held by requests in progress.
         *     - `rpm_exceeded` (429): A limit of requests is reached; the message names it.
         *     - `tpm_exceeded` (429): A limit of tokens is reached; the message names it.
         *     - `invalid_request` (400): The request is malformed, or a field is missing or invalid; `param` names the field.
         *     - `message_too_long` (400): A message has more than 16,000 characters.
         *     - `too_many_messages` (400): `messages` has more than 100 items.
         *     - `context_length_exceeded` (400): The messages are too long for the model's context window.
         *     - `content_policy_violation` (400): Moderation flagged the messages.
         *     - `model_unavailable` (503): No provider or store can serve the request at the moment.
         *     - `timeout` (504): The request reached its time limit.
         *     - `model_not_found` (404): There is no model with this name; the message names those that there are.
         *     - `not_found` (404): No such resource in this tenant.
         *     - `gone` (410): The resource has expired.
         *     - `method_not_allowed` (405): The path does not support this method; the header `Allow` lists those that it supports.
         *     - `payload_too_large` (413): The body is too large.
         *     - `unsupported_media_type` (415): The endpoint does not accept this content type.
         *     - `conflict` (409): The state of the resource does not allow this.
         *     - `idempotency_mismatch` (422): The `Idempotency-Key` was used with a different body.
         *     - `internal_error` (500): The service failed.
         * @enum {string}
         */
        ErrorCode: "missing_api_key" | "invalid_api_key" | "expired_api_key" | "endpoint_not_allowed" | "account_suspended" | "insufficient_credits" | "budget_exceeded" | "rpm_exceeded" | "tpm_exceeded" | "invalid_request" | "message_too_long" | "too_many_messages" | "context_length_exceeded" | "content_policy_violation" | "model_unavailable" | "timeout" | "model_not_found" | "not_found" | "gone" | "method_not_allowed" | "payload_too_large" | "unsupported_media_type" | "conflict" | "idempotency_mismatch" | "internal_error";
        AcceptedChatRequest: {
            id: string;
            /** @constant */
            object: "chat.request";
            /** @description Time of acceptance, in Unix seconds. */
            created_at: number;
            /** @constant */
            status: "queued";
        };
        Error: {
            error: components["schemas"]["ErrorObject"];
        };
        ChatStreamBody: {
            /** @description The conversation, oldest message first. */
            messages: ({
                /** @enum {string} */
                role: "user" | "assistant" | "system";
                content: string;
            } & {
                [key: string]: unknown;
            })[];
            /**
             * @description The model tier; the tenant's default tier where it is left out.
             * @enum {string}
             */
            model?: "mobius" | "oloid";
            /**
             * @description The most tokens that the answer may have.
             * @default 4096
             */
            max_tokens?: number;
            /** @description The caller's own id of the entity; with it the conversation is remembered. It must not have half a surrogate pair. */
            entity_id?: string;
            /** @description The subject of the conversation; else the entity's, else the tenant's. */
            subject?: string;
            /** @description The grade level; else the entity's, else the tenant's. */
            grade?: string;
            /** @description The caller's own data, returned as it was sent. At most 16384 bytes as JSON and 5 levels deep, without the key `__proto__` and numbers beyond 1.7976931348623157e+308. */
            metadata?: {
                [key: string]: unknown;
            };
            /**
             * @description The answer is a JSON object.
             * @default false
             */
            json_mode?: boolean;
            /** @description `tools` is read by `POST /chat/completions` only; send the request there, or leave it out. */
            tools?: unknown[] | null;
            /**
             * @description `tool_choice` is read by `POST /chat/completions` only; send the request there, or leave it out.
             * @enum {string|null}
             */
            tool_choice?: "none" | "auto" | null;
            /** @description `functions` is read by `POST /chat/completions` only; send the request there, or leave it out. */
            functions?: unknown[] | null;
            /**
             * @description `function_call` is read by `POST /chat/completions` only; send the request there, or leave it out.
             * @enum {string|null}
             */
            function_call?: "none" | "auto" | null;
            /** @description `audio` is not supported: this service answers in text; leave it out. */
            audio?: null;
            /**
             * @description `n` must be 1: a request has one answer; send it again for another.
             * @enum {number|null}
             */
            n?: 1 | null;
            /**
             * @description `logprobs` is read by `POST /chat/completions` only; send the request there, or leave it out.
             * @enum {boolean|null}
             */
            logprobs?: false | null;
            /**
             * @description `top_logprobs` is read by `POST /chat/completions` only; send the request there, or leave it out.
             * @enum {number|null}
             */
            top_logprobs?: 0 | null;
            /** @description `logit_bias` is read by `POST /chat/completions` only; send the request there, or leave it out. */
            logit_bias?: {
                [key: string]: unknown;
            } | null;
            /** @description `prediction` is read by `POST /chat/completions` only; send the request there, or leave it out. */
            prediction?: null;
            /** @description `web_search_options` is read by `POST /chat/completions` only; send the request there, or leave it out. */
            web_search_options?: null;
            /**
             * @description `top_k` is read by `POST /chat/completions` only; send the request there, or leave it out.
             * @enum {number|null}
             */
            top_k?: 0 | -1 | null;
            /**
             * @description `min_p` is read by `POST /chat/completions` only; send the request there, or leave it out.
             * @enum {number|null}
             */
            min_p?: 0 | null;
            /**
             * @description `repetition_penalty` is read by `POST /chat/completions` only; send the request there, or leave it out.
             * @enum {number|null}
             */
            repetition_penalty?: 1 | null;
            /** @description `structured_outputs` is read by `POST /chat/completions` only; send the request there, or leave it out. */
            structured_outputs?: null;
            /** @description `guided_json` is read by `POST /chat/completions` only; send the request there, or leave it out. */
            guided_json?: null;
            /** @description `guided_regex` is read by `POST /chat/completions` only; send the request there, or leave it out. */
            guided_regex?: null;
            /** @description `guided_choice` is read by `POST /chat/completions` only; send the request there, or leave it out. */
            guided_choice?: null;
            /** @description `guided_grammar` is read by `POST /chat/completions` only; send the request there, or leave it out. */
            guided_grammar?: null;
            /** @description `grammar` is read by `POST /chat/completions` only; send the request there, or leave it out. */
            grammar?: null;
            /** @description `max_completion_tokens` is read by `POST /chat/completions` only; here it is `max_tokens`. */
            max_completion_tokens?: null;
            /** @description `response_format` is read by `POST /chat/completions` only; here `json_mode` asks for a JSON object. */
            response_format?: ({
                /** @enum {string|null} */
                type?: "text" | null;
            } & {
                [key: string]: unknown;
            }) | null;
            /** @description `stop` is read by `POST /chat/completions` only; send the request there, or leave it out. */
            stop?: ("" | null) | ("" | null)[];
        } & {
            [key: string]: unknown;
        };
        ChatCompletionChunk: {
            id: string;
            /** @constant */
            object: "chat.completion.chunk";
            /** @description Time at which the request was accepted, in Unix seconds. */
            created: number;
            /** @description The tier that served the request, or the published name under which it was asked for. */
            model: string;
            choices: {
                index: number;
                delta: {
                    /** @constant */
                    role?: "assistant";
                    /** @description The next part of the text. */
                    content?: string;
                    /** @description The tools that the model calls. */
                    tool_calls?: {
                        /** @description In streams. */
                        index?: number;
                        id?: string;
                        type?: string;
                        function?: {
                            name?: string;
                            /** @description JSON. */
                            arguments?: string;
                        };
                    }[];
                    /** @description Why the model refuses to answer. */
                    refusal?: string;
                    /** @description What the model reasoned, where its provider shows that; or `reasoning`. */
                    reasoning_content?: string;
                };
                /**
                 * @description Null in every chunk but the last; `error`: the stream failed.
                 * @enum {string|null}
                 */
                finish_reason: "stop" | "length" | "tool_calls" | "content_filter" | "cancelled" | "error" | null;
            }[];
            /** @description In the last chunk. */
            usage?: components["schemas"]["Usage"];
            /** @description The request's own `metadata`, in the last chunk. */
            metadata?: Record<string, never>;
            /** @description In the last chunk of a stream that failed. */
            error?: components["schemas"]["ErrorObject"];
        };
        CompletionsBody: {
            /** @description A tier, or a name that the administrator publishes; the tenant's default tier where it is left out. */
            model?: string | null;
            /**
             * @description The most tokens that the answer may have; what the model can make, or its window leaves, where it is more than that.
             * @default 4096
             */
            max_tokens?: number | null;
            /** @description The caller's own id of the entity; with it the conversation is remembered. It must not have half a surrogate pair. */
            entity_id?: string | null;
            /** @description The subject of the conversation; else the entity's, else the tenant's. */
            subject?: string | null;
            /** @description The grade level; else the entity's, else the tenant's. */
            grade?: string | null;
            /** @description The caller's own data, returned as it was sent. At most 16384 bytes as JSON and 5 levels deep, without the key `__proto__` and numbers beyond 1.7976931348623157e+308. */
            metadata?: {
                [key: string]: unknown;
            } | null;
            /** @description The same as `response_format` of the type `json_object`. */
            json_mode?: boolean | null;
            /** @description Wins over `max_tokens`. */
            max_completion_tokens?: number | null;
            /** @description The answer as Server-Sent Events; needs the scope `chat.stream`. */
            stream?: boolean | null;
            /** @description With `include_usage: true` a chunk of its own without choices has `usage`, with `false` none has; otherwise the last one. */
            stream_options?: ({
                include_usage?: boolean | null;
            } & {
                [key: string]: unknown;
            }) | null;
            response_format?: ({
                /** @enum {string|null} */
                type?: "text" | "json_object" | "json_schema" | null;
                /** @description `name`, `schema` and perhaps `description` and `strict`, as in OpenAI’s structured outputs. */
                json_schema?: {
                    [key: string]: unknown;
                } | null;
            } & {
                [key: string]: unknown;
            }) | null;
            /** @description Answers are text. */
            modalities?: "text"[] | null;
            temperature?: number | null;
            top_p?: number | null;
            /** @description Empty texts and an empty list stop nothing. */
            stop?: string | (string | null)[] | null;
            seed?: number | null;
            /** @description Providers read a keyed hash of tenant and user. */
            user?: string | null;
            /** @description Like `user`. */
            safety_identifier?: string | null;
            /** @description Like `user`. */
            prompt_cache_key?: string | null;
            frequency_penalty?: number | null;
            presence_penalty?: number | null;
            reasoning_effort?: string | null;
            verbosity?: string | null;
            tools?: ({
                /** @description `function`; `custom` where a model of the tier takes it. */
                type: string;
                function?: {
                    name: string;
                    description?: string | null;
                    /** @description A JSON schema. */
                    parameters?: {
                        [key: string]: unknown;
                    } | null;
                    strict?: boolean | null;
                } & {
                    [key: string]: unknown;
                };
            } & {
                [key: string]: unknown;
            })[] | null;
            tool_choice?: ("none" | "auto" | "required") | {
                [key: string]: unknown;
            } | null;
            parallel_tool_calls?: boolean | null;
            logprobs?: boolean | null;
            /** @description With `logprobs`. */
            top_logprobs?: number | null;
            /** @description Models number their tokens differently: fit for a tier of one model. */
            logit_bias?: {
                [key: string]: unknown;
            } | null;
            prediction?: {
                [key: string]: unknown;
            } | null;
            web_search_options?: {
                [key: string]: unknown;
            } | null;
            /** @description The conversation, oldest message first. At least one message has text. */
            messages: (({
                /**
                 * @description `developer` is another name for `system`.
                 * @enum {string}
                 */
                role: "user" | "system" | "developer";
                /** @description Text, or parts; those of users may be images, sound and files, where a model of the tier takes them. */
                content: (string | null) | ({
                    /** @enum {string} */
                    type: "text" | "refusal" | "image_url" | "input_audio" | "file";
                    text?: string | null;
                    refusal?: string | null;
                    image_url?: {
                        /** @description An http or https URL, which only the provider fetches, or a data URL. */
                        url: string;
                        detail?: string | null;
                    } & {
                        [key: string]: unknown;
                    };
                    input_audio?: {
                        data: string;
                        format: string;
                    } & {
                        [key: string]: unknown;
                    };
                    file?: {
                        /** @description A data URL. */
                        file_data: string;
                        filename?: string | null;
                    } & {
                        [key: string]: unknown;
                    };
                } & {
                    [key: string]: unknown;
                })[];
            } & {
                [key: string]: unknown;
            }) | ({
                /** @enum {string} */
                role: "assistant";
                /** @description An answer without text and calls is left out of the conversation. */
                content?: (string | null) | ({
                    /** @enum {string} */
                    type: "text" | "refusal" | "image_url" | "input_audio" | "file";
                    text?: string | null;
                    refusal?: string | null;
                    image_url?: {
                        /** @description An http or https URL, which only the provider fetches, or a data URL. */
                        url: string;
                        detail?: string | null;
                    } & {
                        [key: string]: unknown;
                    };
                    input_audio?: {
                        data: string;
                        format: string;
                    } & {
                        [key: string]: unknown;
                    };
                    file?: {
                        /** @description A data URL. */
                        file_data: string;
                        filename?: string | null;
                    } & {
                        [key: string]: unknown;
                    };
                } & {
                    [key: string]: unknown;
                })[];
                tool_calls?: ({
                    id: string;
                    /** @enum {string|null} */
                    type?: "function" | "custom" | null;
                    function?: {
                        name: string;
                        arguments: string;
                    } & {
                        [key: string]: unknown;
                    };
                    custom?: {
                        name: string;
                        input: string;
                    } & {
                        [key: string]: unknown;
                    };
                } & {
                    [key: string]: unknown;
                })[] | null;
                function_call?: null;
                audio?: null;
            } & {
                [key: string]: unknown;
            }) | ({
                /** @enum {string} */
                role: "tool";
                /** @description Of a call in the last message of the assistant. */
                tool_call_id: string;
                /** @description Text, or parts of text. */
                content: (string | null) | ({
                    /** @enum {string} */
                    type: "text" | "refusal" | "image_url" | "input_audio" | "file";
                    text?: string | null;
                    refusal?: string | null;
                    image_url?: {
                        /** @description An http or https URL, which only the provider fetches, or a data URL. */
                        url: string;
                        detail?: string | null;
                    } & {
                        [key: string]: unknown;
                    };
                    input_audio?: {
                        data: string;
                        format: string;
                    } & {
                        [key: string]: unknown;
                    };
                    file?: {
                        /** @description A data URL. */
                        file_data: string;
                        filename?: string | null;
                    } & {
                        [key: string]: unknown;
                    };
                } & {
                    [key: string]: unknown;
                })[];
            } & {
                [key: string]: unknown;
            }))[];
            /**
             * @description `n` must be 1: a request has one answer; send it again for another.
             * @enum {number|null}
             */
            n?: 1 | null;
            /** @description `functions` is the older form of `tools`; send `tools` and `tool_choice`. */
            functions?: unknown[] | null;
            /**
             * @description `function_call` is the older form of `tools`; send `tools` and `tool_choice`.
             * @enum {string|null}
             */
            function_call?: "none" | "auto" | null;
            /** @description `audio` is not supported: this service answers in text; leave it out. */
            audio?: null;
            /**
             * @description `best_of` is not supported: a request has one answer; leave it out.
             * @enum {number|null}
             */
            best_of?: 1 | null;
        } & {
            [key: string]: unknown;
        };
        CompletionsChunk: {
            id: string;
            /** @constant */
            object: "chat.completion.chunk";
            /** @description Time at which the request was accepted, in Unix seconds. */
            created: number;
            /** @description The tier that served the request, or the published name under which it was asked for. */
            model: string;
            choices: {
                index: number;
                delta: {
                    /** @constant */
                    role?: "assistant";
                    /** @description The next part of the text. */
                    content?: string;
                    /** @description The tools that the model calls. */
                    tool_calls?: {
                        /** @description In streams. */
                        index?: number;
                        id?: string;
                        type?: string;
                        function?: {
                            name?: string;
                            /** @description JSON. */
                            arguments?: string;
                        };
                    }[];
                    /** @description Why the model refuses to answer. */
                    refusal?: string;
                    /** @description What the model reasoned, where its provider shows that; or `reasoning`. */
                    reasoning_content?: string;
                };
                /**
                 * @description Null in every chunk but the last; `error`: the stream failed.
                 * @enum {string|null}
                 */
                finish_reason: "stop" | "length" | "tool_calls" | "content_filter" | "cancelled" | "error" | null;
            }[];
            /** @description In the last chunk; with `include_usage: true` in one without choices behind it, with `false` in none. */
            usage?: components["schemas"]["Usage"] | null;
            /** @description The request's own `metadata`, in the last chunk. */
            metadata?: Record<string, never>;
            /** @description In the last chunk of a stream that failed. */
            error?: components["schemas"]["ErrorObject"];
        };
        ChatRequestList: {
            /** @constant */
            object: "list";
            data: components["schemas"]["ChatRequestSummary"][];
            /** @description Whether there are items behind the last one. */
            has_more: boolean;
            /** @description Null where the page is empty. */
            first_id: string | null;
            /** @description `after` of the next page. */
            last_id: string | null;
        };
        ChatRequestSummary: {
            id: string;
            /** @constant */
            object: "chat.request.summary";
            /** @description Time of acceptance or refusal, in Unix seconds. */
            created_at: number;
            /** @enum {string} */
            status: "completed" | "failed" | "cancelled" | "refused";
            /** @description `chat`, `chat.stream` or `batch`; of a refused request its method and path. */
            endpoint: string;
            key_id: string;
            /** @enum {string} */
            mode: "live" | "test";
            /** @enum {string|null} */
            model: "mobius" | "oloid" | "embedding" | "moderation" | null;
            /** @enum {string|null} */
            error_code: "missing_api_key" | "invalid_api_key" | "expired_api_key" | "endpoint_not_allowed" | "account_suspended" | "insufficient_credits" | "budget_exceeded" | "rpm_exceeded" | "tpm_exceeded" | "invalid_request" | "message_too_long" | "too_many_messages" | "context_length_exceeded" | "content_policy_violation" | "model_unavailable" | "timeout" | "model_not_found" | "not_found" | "gone" | "method_not_allowed" | "payload_too_large" | "unsupported_media_type" | "conflict" | "idempotency_mismatch" | "internal_error" | null;
            finish_reason: string | null;
            prompt_tokens: number | null;
            completion_tokens: number | null;
            /** @description Charged. */
            credits: number | null;
            /** @description Time of acceptance or refusal, in Unix seconds with decimals. */
            accepted_at: number | null;
            /** @description When a worker began, in Unix seconds with decimals. */
            started_at: number | null;
            /** @description When the first text was released, in Unix seconds with decimals. */
            first_token_at: number | null;
            /** @description Time of the end, in Unix seconds with decimals. */
            finished_at: number | null;
        };
        ChatRequestState: {
            id: string;
            /** @constant */
            object: "chat.request";
            /** @description When it was accepted, in Unix seconds. */
            created_at: number;
            /** @enum {string} */
            status: "queued" | "in_progress" | "completed" | "failed" | "cancelled";
            queue: {
                /** @description Among the account's own requests that wait, from 1. */
                position: number;
                /** @description Until a worker begins, as things are. */
                estimated_wait_seconds: number;
            } | null;
            timeline: {
                /** @description When it was accepted, in Unix seconds with milliseconds. */
                accepted_at: number | null;
                /** @description When it was queued, in Unix seconds with milliseconds. */
                queued_at: number | null;
                /** @description When a worker began, in Unix seconds with milliseconds. */
                started_at: number | null;
                /** @description When moderation had passed the messages, in Unix seconds with milliseconds. */
                moderated_at: number | null;
                moderation: {
                    backend: string;
                    /** @enum {string} */
                    verdict: "passed" | "flagged_input" | "flagged_output" | "unavailable";
                    categories: string[];
                } | null;
                /** @description When the first text came, in Unix seconds with milliseconds. */
                first_token_at: number | null;
                /** @description When it ended, in Unix seconds with milliseconds. */
                finished_at: number | null;
                /** @description When it was booked, in Unix seconds with milliseconds. */
                settled_at: number | null;
                attempts: {
                    provider: string;
                    model: string;
                    /** @description When the provider was called, in Unix seconds with milliseconds. */
                    started_at: number | null;
                    /** @description When the call ended, in Unix seconds with milliseconds. */
                    ended_at: number | null;
                    /** @description `ok`, why it failed, or `breaker_open`: it was not made. */
                    outcome: string;
                }[];
            };
            /** @description As its endpoint answers; null until it has ended with an answer. */
            response: components["schemas"]["ChatCompletion"] | components["schemas"]["EmbeddingList"] | components["schemas"]["Moderation"] | null;
            /** @description Null unless it has failed. */
            error: components["schemas"]["ErrorObject"] | null;
            /** @description Null until it has ended. */
            usage: components["schemas"]["Usage"] | null;
        };
        EmbeddingList: {
            /** @constant */
            object: "list";
            data: {
                /** @constant */
                object: "embedding";
                /** @description The place of its input. */
                index: number;
                embedding: number[] | string;
            }[];
            /** @description The name that was asked for. */
            model: string;
            usage: {
                prompt_tokens: number;
                total_tokens: number;
            };
        };
        Moderation: {
            id: string;
            /** @description The moderator. */
            model: string;
            results: {
                /** @description By the tenant's settings. */
                flagged: boolean;
                categories: {
                    [key: string]: boolean;
                };
                category_scores: {
                    [key: string]: number;
                };
            }[];
        };
        EmbeddingsBody: {
            /** @description 1 to 2048 texts, or lists of tokens of cl100k_base, of 300000 tokens in all. */
            input: string | string[] | number[] | number[][];
            /** @description `embedding`, or a published name that leads there. */
            model?: string | null;
            /**
             * @description Of the vectors: numbers, or little-endian 32-bit floats as base64.
             * @default float
             * @enum {string|null}
             */
            encoding_format?: "float" | "base64" | null;
            /** @description Of each vector, where the model can shorten them. */
            dimensions?: number | null;
            /** @description A provider reads a keyed hash of tenant and user. */
            user?: string | null;
        } & {
            [key: string]: unknown;
        };
        ModerationsBody: {
            /** @description A text, 1 to 32 texts, or one text in parts. */
            input: string | string[] | ({
                /** @enum {string} */
                type: "text";
                text: string;
            } & {
                [key: string]: unknown;
            })[];
            /** @description Read by nobody: the administrator has chosen the moderator. */
            model?: string | null;
        } & {
            [key: string]: unknown;
        };
        ModelList: {
            /** @constant */
            object: "list";
            data: components["schemas"]["Model"][];
        };
        Model: {
            /** @description A tier, or a name that the administrator publishes. */
            id: string;
            /** @constant */
            object: "model";
            /** @description Time since which the model exists, in Unix seconds. */
            created: number;
            owned_by: string;
        };
        NewBatch: {
            /** @description The caller's own data, returned as it was sent. At most 16384 bytes as JSON and 5 levels deep, without the key `__proto__` and numbers beyond 1.7976931348623157e+308. */
            metadata?: {
                [key: string]: unknown;
            };
            requests: ({
                /** @description The caller's own name for the request, once in the batch. It must not have half a surrogate pair. */
                custom_id: string;
                /** @enum {string|null} */
                method?: "POST" | null;
                /**
                 * @description The endpoint that reads `body`, as in batches of OpenAI; `/chat` where it is left out.
                 * @enum {string|null}
                 */
                url?: "/v1/chat/completions" | "/chat/completions" | "/platform/v1/chat/completions" | "/v1/embeddings" | "/embeddings" | "/platform/v1/embeddings" | "/chat" | "/v1/chat" | "/platform/v1/chat" | null;
                /** @description As for the endpoint that `url` names; its answer is complete. */
                body: ({
                    /** @description The conversation, oldest message first. */
                    messages: ({
                        /** @enum {string} */
                        role: "user" | "assistant" | "system";
                        content: string;
                    } & {
                        [key: string]: unknown;
                    })[];
                    /**
                     * @description The model tier; the tenant's default tier where it is left out.
                     * @enum {string}
                     */
                    model?: "mobius" | "oloid";
                    /**
                     * @description The most tokens that the answer may have.
                     * @default 4096
                     */
                    max_tokens?: number;
                    /** @description The caller's own id of the entity; with it the conversation is remembered. It must not have half a surrogate pair. */
                    entity_id?: string;
                    /** @description The subject of the conversation; else the entity's, else the tenant's. */
                    subject?: string;
                    /** @description The grade level; else the entity's, else the tenant's. */
                    grade?: string;
                    /** @description The caller's own data, returned as it was sent. At most 16384 bytes as JSON and 5 levels deep, without the key `__proto__` and numbers beyond 1.7976931348623157e+308. */
                    metadata?: {
                        [key: string]: unknown;
                    };
                    /**
                     * @description The answer is a JSON object.
                     * @default false
                     */
                    json_mode?: boolean;
                    /** @description `tools` is read by `POST /chat/completions` only; send the request there, or leave it out. */
                    tools?: unknown[] | null;
                    /**
                     * @description `tool_choice` is read by `POST /chat/completions` only; send the request there, or leave it out.
                     * @enum {string|null}
                     */
                    tool_choice?: "none" | "auto" | null;
                    /** @description `functions` is read by `POST /chat/completions` only; send the request there, or leave it out. */
                    functions?: unknown[] | null;
                    /**
                     * @description `function_call` is read by `POST /chat/completions` only; send the request there, or leave it out.
                     * @enum {string|null}
                     */
                    function_call?: "none" | "auto" | null;
                    /** @description `audio` is not supported: this service answers in text; leave it out. */
                    audio?: null;
                    /**
                     * @description `n` must be 1: a request has one answer; send it again for another.
                     * @enum {number|null}
                     */
                    n?: 1 | null;
                    /**
                     * @description `logprobs` is read by `POST /chat/completions` only; send the request there, or leave it out.
                     * @enum {boolean|null}
                     */
                    logprobs?: false | null;
                    /**
                     * @description `top_logprobs` is read by `POST /chat/completions` only; send the request there, or leave it out.
                     * @enum {number|null}
                     */
                    top_logprobs?: 0 | null;
                    /** @description `logit_bias` is read by `POST /chat/completions` only; send the request there, or leave it out. */
                    logit_bias?: {
                        [key: string]: unknown;
                    } | null;
                    /** @description `prediction` is read by `POST /chat/completions` only; send the request there, or leave it out. */
                    prediction?: null;
                    /** @description `web_search_options` is read by `POST /chat/completions` only; send the request there, or leave it out. */
                    web_search_options?: null;
                    /**
                     * @description `top_k` is read by `POST /chat/completions` only; send the request there, or leave it out.
                     * @enum {number|null}
                     */
                    top_k?: 0 | -1 | null;
                    /**
                     * @description `min_p` is read by `POST /chat/completions` only; send the request there, or leave it out.
                     * @enum {number|null}
                     */
                    min_p?: 0 | null;
                    /**
                     * @description `repetition_penalty` is read by `POST /chat/completions` only; send the request there, or leave it out.
                     * @enum {number|null}
                     */
                    repetition_penalty?: 1 | null;
                    /** @description `structured_outputs` is read by `POST /chat/completions` only; send the request there, or leave it out. */
                    structured_outputs?: null;
                    /** @description `guided_json` is read by `POST /chat/completions` only; send the request there, or leave it out. */
                    guided_json?: null;
                    /** @description `guided_regex` is read by `POST /chat/completions` only; send the request there, or leave it out. */
                    guided_regex?: null;
                    /** @description `guided_choice` is read by `POST /chat/completions` only; send the request there, or leave it out. */
                    guided_choice?: null;
                    /** @description `guided_grammar` is read by `POST /chat/completions` only; send the request there, or leave it out. */
                    guided_grammar?: null;
                    /** @description `grammar` is read by `POST /chat/completions` only; send the request there, or leave it out. */
                    grammar?: null;
                    /** @description `max_completion_tokens` is read by `POST /chat/completions` only; here it is `max_tokens`. */
                    max_completion_tokens?: null;
                    /** @description `response_format` is read by `POST /chat/completions` only; here `json_mode` asks for a JSON object. */
                    response_format?: ({
                        /** @enum {string|null} */
                        type?: "text" | null;
                    } & {
                        [key: string]: unknown;
                    }) | null;
                    /** @description `stop` is read by `POST /chat/completions` only; send the request there, or leave it out. */
                    stop?: ("" | null) | ("" | null)[];
                    /**
                     * @description `stream` is not read here: the answer is complete; for a stream use `POST /chat/stream` or `POST /chat/completions`.
                     * @enum {boolean|null}
                     */
                    stream?: false | null;
                } & {
                    [key: string]: unknown;
                }) | ({
                    /** @description A tier, or a name that the administrator publishes; the tenant's default tier where it is left out. */
                    model?: string | null;
                    /**
                     * @description The most tokens that the answer may have; what the model can make, or its window leaves, where it is more than that.
                     * @default 4096
                     */
                    max_tokens?: number | null;
                    /** @description The caller's own id of the entity; with it the conversation is remembered. It must not have half a surrogate pair. */
                    entity_id?: string | null;
                    /** @description The subject of the conversation; else the entity's, else the tenant's. */
                    subject?: string | null;
                    /** @description The grade level; else the entity's, else the tenant's. */
                    grade?: string | null;
                    /** @description The caller's own data, returned as it was sent. At most 16384 bytes as JSON and 5 levels deep, without the key `__proto__` and numbers beyond 1.7976931348623157e+308. */
                    metadata?: {
                        [key: string]: unknown;
                    } | null;
                    /** @description The same as `response_format` of the type `json_object`. */
                    json_mode?: boolean | null;
                    /** @description Wins over `max_tokens`. */
                    max_completion_tokens?: number | null;
                    /** @description The answer as Server-Sent Events; needs the scope `chat.stream`. */
                    stream?: boolean | null;
                    /** @description With `include_usage: true` a chunk of its own without choices has `usage`, with `false` none has; otherwise the last one. */
                    stream_options?: ({
                        include_usage?: boolean | null;
                    } & {
                        [key: string]: unknown;
                    }) | null;
                    response_format?: ({
                        /** @enum {string|null} */
                        type?: "text" | "json_object" | "json_schema" | null;
                        /** @description `name`, `schema` and perhaps `description` and `strict`, as in OpenAI’s structured outputs. */
                        json_schema?: {
                            [key: string]: unknown;
                        } | null;
                    } & {
                        [key: string]: unknown;
                    }) | null;
                    /** @description Answers are text. */
                    modalities?: "text"[] | null;
                    temperature?: number | null;
                    top_p?: number | null;
                    /** @description Empty texts and an empty list stop nothing. */
                    stop?: string | (string | null)[] | null;
                    seed?: number | null;
                    /** @description Providers read a keyed hash of tenant and user. */
                    user?: string | null;
                    /** @description Like `user`. */
                    safety_identifier?: string | null;
                    /** @description Like `user`. */
                    prompt_cache_key?: string | null;
                    frequency_penalty?: number | null;
                    presence_penalty?: number | null;
                    reasoning_effort?: string | null;
                    verbosity?: string | null;
                    tools?: ({
                        /** @description `function`; `custom` where a model of the tier takes it. */
                        type: string;
                        function?: {
                            name: string;
                            description?: string | null;
                            /** @description A JSON schema. */
                            parameters?: {
                                [key: string]: unknown;
                            } | null;
                            strict?: boolean | null;
                        } & {
                            [key: string]: unknown;
                        };
                    } & {
                        [key: string]: unknown;
                    })[] | null;
                    tool_choice?: ("none" | "auto" | "required") | {
                        [key: string]: unknown;
                    } | null;
                    parallel_tool_calls?: boolean | null;
                    logprobs?: boolean | null;
                    /** @description With `logprobs`. */
                    top_logprobs?: number | null;
                    /** @description Models number their tokens differently: fit for a tier of one model. */
                    logit_bias?: {
                        [key: string]: unknown;
                    } | null;
                    prediction?: {
                        [key: string]: unknown;
                    } | null;
                    web_search_options?: {
                        [key: string]: unknown;
                    } | null;
                    /** @description The conversation, oldest message first. At least one message has text. */
                    messages: (({
                        /**
                         * @description `developer` is another name for `system`.
                         * @enum {string}
                         */
                        role: "user" | "system" | "developer";
                        /** @description Text, or parts; those of users may be images, sound and files, where a model of the tier takes them. */
                        content: (string | null) | ({
                            /** @enum {string} */
                            type: "text" | "refusal" | "image_url" | "input_audio" | "file";
                            text?: string | null;
                            refusal?: string | null;
                            image_url?: {
                                /** @description An http or https URL, which only the provider fetches, or a data URL. */
                                url: string;
                                detail?: string | null;
                            } & {
                                [key: string]: unknown;
                            };
                            input_audio?: {
                                data: string;
                                format: string;
                            } & {
                                [key: string]: unknown;
                            };
                            file?: {
                                /** @description A data URL. */
                                file_data: string;
                                filename?: string | null;
                            } & {
                                [key: string]: unknown;
                            };
                        } & {
                            [key: string]: unknown;
                        })[];
                    } & {
                        [key: string]: unknown;
                    }) | ({
                        /** @enum {string} */
                        role: "assistant";
                        /** @description An answer without text and calls is left out of the conversation. */
                        content?: (string | null) | ({
                            /** @enum {string} */
                            type: "text" | "refusal" | "image_url" | "input_audio" | "file";
                            text?: string | null;
                            refusal?: string | null;
                            image_url?: {
                                /** @description An http or https URL, which only the provider fetches, or a data URL. */
                                url: string;
                                detail?: string | null;
                            } & {
                                [key: string]: unknown;
                            };
                            input_audio?: {
                                data: string;
                                format: string;
                            } & {
                                [key: string]: unknown;
                            };
                            file?: {
                                /** @description A data URL. */
                                file_data: string;
                                filename?: string | null;
                            } & {
                                [key: string]: unknown;
                            };
                        } & {
                            [key: string]: unknown;
                        })[];
                        tool_calls?: ({
                            id: string;
                            /** @enum {string|null} */
                            type?: "function" | "custom" | null;
                            function?: {
                                name: string;
                                arguments: string;
                            } & {
                                [key: string]: unknown;
                            };
                            custom?: {
                                name: string;
                                input: string;
                            } & {
                                [key: string]: unknown;
                            };
                        } & {
                            [key: string]: unknown;
                        })[] | null;
                        function_call?: null;
                        audio?: null;
                    } & {
                        [key: string]: unknown;
                    }) | ({
                        /** @enum {string} */
                        role: "tool";
                        /** @description Of a call in the last message of the assistant. */
                        tool_call_id: string;
                        /** @description Text, or parts of text. */
                        content: (string | null) | ({
                            /** @enum {string} */
                            type: "text" | "refusal" | "image_url" | "input_audio" | "file";
                            text?: string | null;
                            refusal?: string | null;
                            image_url?: {
                                /** @description An http or https URL, which only the provider fetches, or a data URL. */
                                url: string;
                                detail?: string | null;
                            } & {
                                [key: string]: unknown;
                            };
                            input_audio?: {
                                data: string;
                                format: string;
                            } & {
                                [key: string]: unknown;
                            };
                            file?: {
                                /** @description A data URL. */
                                file_data: string;
                                filename?: string | null;
                            } & {
                                [key: string]: unknown;
                            };
                        } & {
                            [key: string]: unknown;
                        })[];
                    } & {
                        [key: string]: unknown;
                    }))[];
                    /**
                     * @description `n` must be 1: a request has one answer; send it again for another.
                     * @enum {number|null}
                     */
                    n?: 1 | null;
                    /** @description `functions` is the older form of `tools`; send `tools` and `tool_choice`. */
                    functions?: unknown[] | null;
                    /**
                     * @description `function_call` is the older form of `tools`; send `tools` and `tool_choice`.
                     * @enum {string|null}
                     */
                    function_call?: "none" | "auto" | null;
                    /** @description `audio` is not supported: this service answers in text; leave it out. */
                    audio?: null;
                    /**
                     * @description `best_of` is not supported: a request has one answer; leave it out.
                     * @enum {number|null}
                     */
                    best_of?: 1 | null;
                } & {
                    [key: string]: unknown;
                });
            } & {
                [key: string]: unknown;
            })[];
        };
        BatchItem: {
            /** @description The caller's own name for the request, once in the batch. It must not have half a surrogate pair. */
            custom_id: string;
            /** @enum {string|null} */
            method?: "POST" | null;
            /**
             * @description The endpoint that reads `body`, as in batches of OpenAI; `/chat` where it is left out.
             * @enum {string|null}
             */
            url?: "/v1/chat/completions" | "/chat/completions" | "/platform/v1/chat/completions" | "/v1/embeddings" | "/embeddings" | "/platform/v1/embeddings" | "/chat" | "/v1/chat" | "/platform/v1/chat" | null;
            /** @description As for the endpoint that `url` names; its answer is complete. */
            body: ({
                /** @description The conversation, oldest message first. */
                messages: ({
                    /** @enum {string} */
                    role: "user" | "assistant" | "system";
                    content: string;
                } & {
                    [key: string]: unknown;
                })[];
                /**
                 * @description The model tier; the tenant's default tier where it is left out.
                 * @enum {string}
                 */
                model?: "mobius" | "oloid";
                /**
                 * @description The most tokens that the answer may have.
                 * @default 4096
                 */
                max_tokens?: number;
                /** @description The caller's own id of the entity; with it the conversation is remembered. It must not have half a surrogate pair. */
                entity_id?: string;
                /** @description The subject of the conversation; else the entity's, else the tenant's. */
                subject?: string;
                /** @description The grade level; else the entity's, else the tenant's. */
                grade?: string;
                /** @description The caller's own data, returned as it was sent. At most 16384 bytes as JSON and 5 levels deep, without the key `__proto__` and numbers beyond 1.7976931348623157e+308. */
                metadata?: {
                    [key: string]: unknown;
                };
                /**
                 * @description The answer is a JSON object.
                 * @default false
                 */
                json_mode?: boolean;
                /** @description `tools` is read by `POST /chat/completions` only; send the request there, or leave it out. */
                tools?: unknown[] | null;
                /**
                 * @description `tool_choice` is read by `POST /chat/completions` only; send the request there, or leave it out.
                 * @enum {string|null}
                 */
                tool_choice?: "none" | "auto" | null;
                /** @description `functions` is read by `POST /chat/completions` only; send the request there, or leave it out. */
                functions?: unknown[] | null;
                /**
                 * @description `function_call` is read by `POST /chat/completions` only; send the request there, or leave it out.
                 * @enum {string|null}
                 */
                function_call?: "none" | "auto" | null;
                /** @description `audio` is not supported: this service answers in text; leave it out. */
                audio?: null;
                /**
                 * @description `n` must be 1: a request has one answer; send it again for another.
                 * @enum {number|null}
                 */
                n?: 1 | null;
                /**
                 * @description `logprobs` is read by `POST /chat/completions` only; send the request there, or leave it out.
                 * @enum {boolean|null}
                 */
                logprobs?: false | null;
                /**
                 * @description `top_logprobs` is read by `POST /chat/completions` only; send the request there, or leave it out.
                 * @enum {number|null}
                 */
                top_logprobs?: 0 | null;
                /** @description `logit_bias` is read by `POST /chat/completions` only; send the request there, or leave it out. */
                logit_bias?: {
                    [key: string]: unknown;
                } | null;
                /** @description `prediction` is read by `POST /chat/completions` only; send the request there, or leave it out. */
                prediction?: null;
                /** @description `web_search_options` is read by `POST /chat/completions` only; send the request there, or leave it out. */
                web_search_options?: null;
                /**
                 * @description `top_k` is read by `POST /chat/completions` only; send the request there, or leave it out.
                 * @enum {number|null}
                 */
                top_k?: 0 | -1 | null;
                /**
                 * @description `min_p` is read by `POST /chat/completions` only; send the request there, or leave it out.
                 * @enum {number|null}
                 */
                min_p?: 0 | null;
                /**
                 * @description `repetition_penalty` is read by `POST /chat/completions` only; send the request there, or leave it out.
                 * @enum {number|null}
                 */
                repetition_penalty?: 1 | null;
                /** @description `structured_outputs` is read by `POST /chat/completions` only; send the request there, or leave it out. */
                structured_outputs?: null;
                /** @description `guided_json` is read by `POST /chat/completions` only; send the request there, or leave it out. */
                guided_json?: null;
                /** @description `guided_regex` is read by `POST /chat/completions` only; send the request there, or leave it out. */
                guided_regex?: null;
                /** @description `guided_choice` is read by `POST /chat/completions` only; send the request there, or leave it out. */
                guided_choice?: null;
                /** @description `guided_grammar` is read by `POST /chat/completions` only; send the request there, or leave it out. */
                guided_grammar?: null;
                /** @description `grammar` is read by `POST /chat/completions` only; send the request there, or leave it out. */
                grammar?: null;
                /** @description `max_completion_tokens` is read by `POST /chat/completions` only; here it is `max_tokens`. */
                max_completion_tokens?: null;
                /** @description `response_format` is read by `POST /chat/completions` only; here `json_mode` asks for a JSON object. */
                response_format?: ({
                    /** @enum {string|null} */
                    type?: "text" | null;
                } & {
                    [key: string]: unknown;
                }) | null;
                /** @description `stop` is read by `POST /chat/completions` only; send the request there, or leave it out. */
                stop?: ("" | null) | ("" | null)[];
                /**
                 * @description `stream` is not read here: the answer is complete; for a stream use `POST /chat/stream` or `POST /chat/completions`.
                 * @enum {boolean|null}
                 */
                stream?: false | null;
            } & {
                [key: string]: unknown;
            }) | ({
                /** @description A tier, or a name that the administrator publishes; the tenant's default tier where it is left out. */
                model?: string | null;
                /**
                 * @description The most tokens that the answer may have; what the model can make, or its window leaves, where it is more than that.
                 * @default 4096
                 */
                max_tokens?: number | null;
                /** @description The caller's own id of the entity; with it the conversation is remembered. It must not have half a surrogate pair. */
                entity_id?: string | null;
                /** @description The subject of the conversation; else the entity's, else the tenant's. */
                subject?: string | null;
                /** @description The grade level; else the entity's, else the tenant's. */
                grade?: string | null;
                /** @description The caller's own data, returned as it was sent. At most 16384 bytes as JSON and 5 levels deep, without the key `__proto__` and numbers beyond 1.7976931348623157e+308. */
                metadata?: {
                    [key: string]: unknown;
                } | null;
                /** @description The same as `response_format` of the type `json_object`. */
                json_mode?: boolean | null;
                /** @description Wins over `max_tokens`. */
                max_completion_tokens?: number | null;
                /** @description The answer as Server-Sent Events; needs the scope `chat.stream`. */
                stream?: boolean | null;
                /** @description With `include_usage: true` a chunk of its own without choices has `usage`, with `false` none has; otherwise the last one. */
                stream_options?: ({
                    include_usage?: boolean | null;
                } & {
                    [key: string]: unknown;
                }) | null;
                response_format?: ({
                    /** @enum {string|null} */
                    type?: "text" | "json_object" | "json_schema" | null;
                    /** @description `name`, `schema` and perhaps `description` and `strict`, as in OpenAI’s structured outputs. */
                    json_schema?: {
                        [key: string]: unknown;
                    } | null;
                } & {
                    [key: string]: unknown;
                }) | null;
                /** @description Answers are text. */
                modalities?: "text"[] | null;
                temperature?: number | null;
                top_p?: number | null;
                /** @description Empty texts and an empty list stop nothing. */
                stop?: string | (string | null)[] | null;
                seed?: number | null;
                /** @description Providers read a keyed hash of tenant and user. */
                user?: string | null;
                /** @description Like `user`. */
                safety_identifier?: string | null;
                /** @description Like `user`. */
                prompt_cache_key?: string | null;
                frequency_penalty?: number | null;
                presence_penalty?: number | null;
                reasoning_effort?: string | null;
                verbosity?: string | null;
                tools?: ({
                    /** @description `function`; `custom` where a model of the tier takes it. */
                    type: string;
                    function?: {
                        name: string;
                        description?: string | null;
                        /** @description A JSON schema. */
                        parameters?: {
                            [key: string]: unknown;
                        } | null;
                        strict?: boolean | null;
                    } & {
                        [key: string]: unknown;
                    };
                } & {
                    [key: string]: unknown;
                })[] | null;
                tool_choice?: ("none" | "auto" | "required") | {
                    [key: string]: unknown;
                } | null;
                parallel_tool_calls?: boolean | null;
                logprobs?: boolean | null;
                /** @description With `logprobs`. */
                top_logprobs?: number | null;
                /** @description Models number their tokens differently: fit for a tier of one model. */
                logit_bias?: {
                    [key: string]: unknown;
                } | null;
                prediction?: {
                    [key: string]: unknown;
                } | null;
                web_search_options?: {
                    [key: string]: unknown;
                } | null;
                /** @description The conversation, oldest message first. At least one message has text. */
                messages: (({
                    /**
                     * @description `developer` is another name for `system`.
                     * @enum {string}
                     */
                    role: "user" | "system" | "developer";
                    /** @description Text, or parts; those of users may be images, sound and files, where a model of the tier takes them. */
                    content: (string | null) | ({
                        /** @enum {string} */
                        type: "text" | "refusal" | "image_url" | "input_audio" | "file";
                        text?: string | null;
                        refusal?: string | null;
                        image_url?: {
                            /** @description An http or https URL, which only the provider fetches, or a data URL. */
                            url: string;
                            detail?: string | null;
                        } & {
                            [key: string]: unknown;
                        };
                        input_audio?: {
                            data: string;
                            format: string;
                        } & {
                            [key: string]: unknown;
                        };
                        file?: {
                            /** @description A data URL. */
                            file_data: string;
                            filename?: string | null;
                        } & {
                            [key: string]: unknown;
                        };
                    } & {
                        [key: string]: unknown;
                    })[];
                } & {
                    [key: string]: unknown;
                }) | ({
                    /** @enum {string} */
                    role: "assistant";
                    /** @description An answer without text and calls is left out of the conversation. */
                    content?: (string | null) | ({
                        /** @enum {string} */
                        type: "text" | "refusal" | "image_url" | "input_audio" | "file";
                        text?: string | null;
                        refusal?: string | null;
                        image_url?: {
                            /** @description An http or https URL, which only the provider fetches, or a data URL. */
                            url: string;
                            detail?: string | null;
                        } & {
                            [key: string]: unknown;
                        };
                        input_audio?: {
                            data: string;
                            format: string;
                        } & {
                            [key: string]: unknown;
                        };
                        file?: {
                            /** @description A data URL. */
                            file_data: string;
                            filename?: string | null;
                        } & {
                            [key: string]: unknown;
                        };
                    } & {
                        [key: string]: unknown;
                    })[];
                    tool_calls?: ({
                        id: string;
                        /** @enum {string|null} */
                        type?: "function" | "custom" | null;
                        function?: {
                            name: string;
                            arguments: string;
                        } & {
                            [key: string]: unknown;
                        };
                        custom?: {
                            name: string;
                            input: string;
                        } & {
                            [key: string]: unknown;
                        };
                    } & {
                        [key: string]: unknown;
                    })[] | null;
                    function_call?: null;
                    audio?: null;
                } & {
                    [key: string]: unknown;
                }) | ({
                    /** @enum {string} */
                    role: "tool";
                    /** @description Of a call in the last message of the assistant. */
                    tool_call_id: string;
                    /** @description Text, or parts of text. */
                    content: (string | null) | ({
                        /** @enum {string} */
                        type: "text" | "refusal" | "image_url" | "input_audio" | "file";
                        text?: string | null;
                        refusal?: string | null;
                        image_url?: {
                            /** @description An http or https URL, which only the provider fetches, or a data URL. */
                            url: string;
                            detail?: string | null;
                        } & {
                            [key: string]: unknown;
                        };
                        input_audio?: {
                            data: string;
                            format: string;
                        } & {
                            [key: string]: unknown;
                        };
                        file?: {
                            /** @description A data URL. */
                            file_data: string;
                            filename?: string | null;
                        } & {
                            [key: string]: unknown;
                        };
                    } & {
                        [key: string]: unknown;
                    })[];
                } & {
                    [key: string]: unknown;
                }))[];
                /**
                 * @description `n` must be 1: a request has one answer; send it again for another.
                 * @enum {number|null}
                 */
                n?: 1 | null;
                /** @description `functions` is the older form of `tools`; send `tools` and `tool_choice`. */
                functions?: unknown[] | null;
                /**
                 * @description `function_call` is the older form of `tools`; send `tools` and `tool_choice`.
                 * @enum {string|null}
                 */
                function_call?: "none" | "auto" | null;
                /** @description `audio` is not supported: this service answers in text; leave it out. */
                audio?: null;
                /**
                 * @description `best_of` is not supported: a request has one answer; leave it out.
                 * @enum {number|null}
                 */
                best_of?: 1 | null;
            } & {
                [key: string]: unknown;
            });
        } & {
            [key: string]: unknown;
        };
        Batch: {
            id: string;
            /** @constant */
            object: "batch";
            /** @description Time of creation, in Unix seconds. */
            created_at: number;
            status: components["schemas"]["BatchStatus"];
            request_counts: {
                total: number;
                completed: number;
                failed: number;
            };
            /**
             * @description What keeps the next request from being sent.
             * @enum {string|null}
             */
            waiting_for: "tpm" | "credits" | "budget" | "daily_requests" | "test_tokens" | "account" | "queue" | "provider" | null;
            /** @description The batch's own `metadata`. */
            metadata: Record<string, never> | null;
            key_id: string;
            /** @enum {string} */
            mode: "live" | "test";
            /** @description Time at which the first request was sent, in Unix seconds. */
            started_at: number | null;
            /** @description Time from which no request is sent any more, in Unix seconds. */
            expires_at: number | null;
            /** @description Time at which the last request may end, at the pace so far, in Unix seconds. */
            estimated_completion_at: number | null;
            /** @description Time of the cancellation, in Unix seconds. */
            cancelled_at: number | null;
            /** @description Time at which the last request ended, in Unix seconds. */
            completed_at: number | null;
        };
        /** @enum {string} */
        BatchStatus: "validating" | "in_progress" | "completed" | "failed" | "expired" | "cancelling" | "cancelled";
        BatchList: {
            /** @constant */
            object: "list";
            data: components["schemas"]["Batch"][];
            /** @description Whether there are items behind the last one. */
            has_more: boolean;
            /** @description Null where the page is empty. */
            first_id: string | null;
            /** @description `after` of the next page. */
            last_id: string | null;
        };
        BatchResult: {
            /** @description Null where the request had none that could be read. */
            custom_id: string | null;
            request_id: string;
            response?: components["schemas"]["ChatCompletion"] | components["schemas"]["EmbeddingList"];
            error?: components["schemas"]["ErrorObject"];
        };
        NewApiKey: {
            /** @description For people; empty by default. It must not have half a surrogate pair. */
            name?: string;
            /** @description What the key may call; `*`, the default, is everything. */
            scopes?: ("*" | "chat" | "chat.stream" | "embeddings" | "keys" | "usage" | "webhooks" | "entities" | "billing" | "compliance")[];
            /** @description Unix seconds; not together with `expires_in_seconds`. */
            expires_at?: number;
            /** @description Seconds from now. */
            expires_in_seconds?: number;
            /** @description Requests per minute; the tenant's limit by default. */
            rpm?: number;
            /** @description Tokens per minute; the tenant's limit by default. */
            tpm?: number;
            /** @description Requests in any 24 hours, 0 for no limit; the tenant's limit by default. */
            daily_requests?: number;
            /**
             * @description `live` by default.
             * @enum {string}
             */
            mode?: "live" | "test";
        };
        ApiKeyWithValue: {
            id: string;
            /** @constant */
            object: "api_key";
            /** @description Time of creation, in Unix seconds. */
            created_at: number;
            name: string;
            /**
             * @description A test key is not billed, and sees and changes test things only.
             * @enum {string}
             */
            mode: "live" | "test";
            scopes: ("*" | "chat" | "chat.stream" | "embeddings" | "keys" | "usage" | "webhooks" | "entities" | "billing" | "compliance")[];
            /** @enum {string} */
            status: "active" | "revoked" | "expired";
            limits: {
                /** @description Requests per minute. */
                rpm: number;
                /** @description Tokens per minute. */
                tpm: number;
                /** @description Requests in any 24 hours; 0 means unlimited. */
                daily_requests: number;
            };
            /** @description Time of expiry, in Unix seconds. */
            expires_at: number | null;
            /** @description Time of the latest use, within a minute, in Unix seconds. */
            last_used_at: number | null;
            /** @description The beginning and the end of the value. */
            redacted_value: string;
            /** @description Until when the value before the latest rotation is accepted, in Unix seconds. */
            previous_value_expires_at: number | null;
            /** @description The key itself, shown only once. */
            value?: string;
        };
        ApiKeyList: {
            /** @constant */
            object: "list";
            data: components["schemas"]["ApiKey"][];
            /** @description Whether there are items behind the last one. */
            has_more: boolean;
            /** @description Null where the page is empty. */
            first_id: string | null;
            /** @description `after` of the next page. */
            last_id: string | null;
        };
        ApiKey: {
            id: string;
            /** @constant */
            object: "api_key";
            /** @description Time of creation, in Unix seconds. */
            created_at: number;
            name: string;
            /**
             * @description A test key is not billed, and sees and changes test things only.
             * @enum {string}
             */
            mode: "live" | "test";
            scopes: ("*" | "chat" | "chat.stream" | "embeddings" | "keys" | "usage" | "webhooks" | "entities" | "billing" | "compliance")[];
            /** @enum {string} */
            status: "active" | "revoked" | "expired";
            limits: {
                /** @description Requests per minute. */
                rpm: number;
                /** @description Tokens per minute. */
                tpm: number;
                /** @description Requests in any 24 hours; 0 means unlimited. */
                daily_requests: number;
            };
            /** @description Time of expiry, in Unix seconds. */
            expires_at: number | null;
            /** @description Time of the latest use, within a minute, in Unix seconds. */
            last_used_at: number | null;
            /** @description The beginning and the end of the value. */
            redacted_value: string;
            /** @description Until when the value before the latest rotation is accepted, in Unix seconds. */
            previous_value_expires_at: number | null;
        };
        ApiKeyChanges: {
            /** @description For people; empty by default. It must not have half a surrogate pair. */
            name?: string;
            /** @description What the key may call; `*`, the default, is everything. */
            scopes?: ("*" | "chat" | "chat.stream" | "embeddings" | "keys" | "usage" | "webhooks" | "entities" | "billing" | "compliance")[];
            /** @description Unix seconds; not together with `expires_in_seconds`. */
            expires_at?: number | null;
            /** @description Seconds from now. */
            expires_in_seconds?: number;
            /** @description Requests per minute; the tenant's limit by default. */
            rpm?: number | null;
            /** @description Tokens per minute; the tenant's limit by default. */
            tpm?: number | null;
            /** @description Requests in any 24 hours, 0 for no limit; the tenant's limit by default. */
            daily_requests?: number | null;
        };
        DeletedApiKey: {
            id: string;
            /** @constant */
            object: "api_key";
            /** @constant */
            deleted: true;
        };
        ApiKeyRotation: {
            /** @description How long the previous value keeps working, in seconds; 0 by default. */
            grace_seconds?: number;
        };
        NewEntity: {
            /** @description Applied to requests with this entity that name no subject. It must not have half a surrogate pair. */
            subject?: string | null;
            /** @description Applied to requests with this entity that name no grade. It must not have half a surrogate pair. */
            grade?: string | null;
            /** @description For people. It must not have half a surrogate pair. */
            name?: string | null;
            /** @description Any JSON object up to 16 KiB, at most 5 levels deep. At most 16384 bytes as JSON and 5 levels deep, without the key `__proto__` and numbers beyond 1.7976931348623157e+308. */
            metadata?: {
                [key: string]: unknown;
            } | null;
            /** @description The caller's own id of the entity, 1 to 256 characters. It must not have half a surrogate pair. */
            entity_id: string;
        };
        Entity: {
            /** @description The same as `entity_id`. */
            id: string;
            /** @constant */
            object: "entity";
            /** @description Time of creation, in Unix seconds. */
            created_at: number;
            /** @description The caller's own id. */
            entity_id: string;
            subject: string | null;
            grade: string | null;
            name: string | null;
            metadata: Record<string, never>;
        };
        EntityList: {
            /** @constant */
            object: "list";
            data: components["schemas"]["Entity"][];
            /** @description Whether there are items behind the last one. */
            has_more: boolean;
            /** @description Null where the page is empty. */
            first_id: string | null;
            /** @description `after` of the next page. */
            last_id: string | null;
        };
        EntityFields: {
            /** @description Applied to requests with this entity that name no subject. It must not have half a surrogate pair. */
            subject?: string | null;
            /** @description Applied to requests with this entity that name no grade. It must not have half a surrogate pair. */
            grade?: string | null;
            /** @description For people. It must not have half a surrogate pair. */
            name?: string | null;
            /** @description Any JSON object up to 16 KiB, at most 5 levels deep. At most 16384 bytes as JSON and 5 levels deep, without the key `__proto__` and numbers beyond 1.7976931348623157e+308. */
            metadata?: {
                [key: string]: unknown;
            } | null;
            /** @description The caller's own id of the entity, 1 to 256 characters. It must not have half a surrogate pair. */
            entity_id?: string;
        };
        EntityChanges: {
            /** @description Applied to requests with this entity that name no subject. It must not have half a surrogate pair. */
            subject?: string | null;
            /** @description Applied to requests with this entity that name no grade. It must not have half a surrogate pair. */
            grade?: string | null;
            /** @description For people. It must not have half a surrogate pair. */
            name?: string | null;
            /** @description Any JSON object up to 16 KiB, at most 5 levels deep. At most 16384 bytes as JSON and 5 levels deep, without the key `__proto__` and numbers beyond 1.7976931348623157e+308. */
            metadata?: {
                [key: string]: unknown;
            } | null;
        };
        DeletedEntity: {
            /** @description The caller's own id. */
            id: string;
            /** @constant */
            object: "entity";
            /** @constant */
            deleted: true;
        };
        EntityMessageList: {
            /** @constant */
            object: "list";
            data: components["schemas"]["EntityMessage"][];
            /** @description Whether there are items behind the last one. */
            has_more: boolean;
            /** @description Null where the page is empty. */
            first_id: string | null;
            /** @description `after` of the next page. */
            last_id: string | null;
        };
        EntityMessage: {
            id: string;
            /** @constant */
            object: "entity.message";
            /** @description Time at which its request was accepted, in Unix seconds. */
            created_at: number;
            /** @enum {string} */
            role: "user" | "assistant" | "system";
            content: string;
            /** @description The request that stored it. */
            request_id: string;
        };
        DeletedEntityHistory: {
            /** @description The caller's own id. */
            id: string;
            /** @constant */
            object: "entity.history";
            /** @constant */
            deleted: true;
        };
        UsagePage: {
            /** @constant */
            object: "page";
            data: {
                /** @constant */
                object: "bucket";
                /** @description First moment of the bucket, in Unix seconds. */
                start_time: number;
                /** @description First moment after the bucket, in Unix seconds. */
                end_time: number;
                /** @description Empty where nothing was used. */
                results: components["schemas"]["UsageResult"][];
            }[];
            has_more: boolean;
            /** @description `page` of the next call. */
            next_page: string | null;
        };
        UsageResult: {
            /** @constant */
            object: "usage.result";
            requests: number;
            prompt_tokens: number;
            completion_tokens: number;
            total_tokens: number;
            /** @description Part of `prompt_tokens`. */
            cached_tokens: number;
            /** @description Part of `prompt_tokens`. */
            cache_write_tokens: number;
            /** @description Part of `prompt_tokens`. */
            prompt_audio_tokens: number;
            /** @description Part of `completion_tokens`. */
            reasoning_tokens: number;
            /** @description Part of `completion_tokens`. */
            completion_audio_tokens: number;
            /** @description Credits that were charged. */
            credits: number;
            /** @description Requests whose tokens the service counted or cut, as the provider did not count them believably. */
            estimated_requests: number;
            /** @description Null where the sums are not grouped by it. */
            key_id: string | null;
            /** @description Null where the sums are not grouped by it. */
            model: string | null;
            /** @description Null where the sums are not grouped by it. */
            entity_id: string | null;
            /** @description Null where the sums are not grouped by it. */
            mode: string | null;
            /** @description Null where the sums are not grouped by it. */
            endpoint: string | null;
        };
        UsageRequestList: {
            /** @constant */
            object: "list";
            data: components["schemas"]["UsageRequest"][];
            /** @description Whether there are items behind the last one. */
            has_more: boolean;
            /** @description Null where the page is empty. */
            first_id: string | null;
            /** @description `after` of the next page. */
            last_id: string | null;
        };
        UsageRequest: {
            id: string;
            /** @constant */
            object: "usage.request";
            /** @description Time of acceptance, in Unix seconds. */
            created_at: number;
            /** @description Time of the booking, in Unix seconds. */
            settled_at: number;
            key_id: string | null;
            /** @enum {string|null} */
            mode: "live" | "test" | null;
            endpoint: string | null;
            /** @enum {string|null} */
            model: "mobius" | "oloid" | "embedding" | null;
            entity_id: string | null;
            prompt_tokens: number;
            completion_tokens: number;
            total_tokens: number;
            /** @description Part of `prompt_tokens`. */
            cached_tokens: number;
            /** @description Part of `prompt_tokens`. */
            cache_write_tokens: number;
            /** @description Part of `prompt_tokens`. */
            prompt_audio_tokens: number;
            /** @description Part of `completion_tokens`. */
            reasoning_tokens: number;
            /** @description Part of `completion_tokens`. */
            completion_audio_tokens: number;
            /** @description Credits that were charged. */
            credits: number;
            /** @description The service counted or cut the tokens, as the provider did not count them believably. */
            estimated: boolean;
            finish_reason: string | null;
        };
        BillingStatus: {
            /** @constant */
            object: "billing.status";
            /** @description Credits; below zero where an answer cost more than was left. */
            balance: number;
            /** @description Credits held by requests in progress. */
            held: number;
            /** @description The balance less what is held. */
            available: number;
            /** @constant */
            currency: "credits";
            budget: {
                /** @description Tokens a calendar month; null: no budget. */
                limit: number | null;
                used: number;
                remaining: number | null;
                /** @description Beginning of the next month (UTC), in Unix seconds. */
                resets_at: number;
            };
        };
        CreditPackageList: {
            /** @constant */
            object: "list";
            data: components["schemas"]["CreditPackage"][];
            /** @description Whether there are items behind the last one. */
            has_more: boolean;
            /** @description Null where the page is empty. */
            first_id: string | null;
            /** @description `after` of the next page. */
            last_id: string | null;
            /** @description ISO 4217, lower case. */
            currency: string;
            /** @description Of free amounts, in minor units; null: only packages are sold. */
            price_per_million_credits: number | null;
        };
        CreditPackage: {
            id: string;
            /** @constant */
            object: "billing.package";
            /** @description Time of creation, in Unix seconds. */
            created_at: number;
            name: string;
            credits: number;
            /** @description In the currency's minor unit. */
            amount: number;
            /** @description ISO 4217, lower case. */
            currency: string;
            /** @description Time from which it is no longer sold, in Unix seconds. */
            expires_at: number | null;
        };
        NewCheckout: {
            /** @description A package of `GET /billing/packages`; or name `credits`. */
            package_id?: string;
            /** @description A free amount of credits; or name `package_id`. At most six decimals. */
            credits?: number;
            /**
             * Format: uri
             * @description Where the buyer goes after paying. An http or https URL in ASCII, without a user name or password.
             */
            success_url: string;
            /**
             * Format: uri
             * @description Where the buyer goes without paying. An http or https URL in ASCII, without a user name or password.
             */
            cancel_url: string;
        } & (unknown | unknown);
        Checkout: {
            id: string;
            /** @constant */
            object: "billing.checkout";
            /** @description Time of creation, in Unix seconds. */
            created_at: number;
            /** @enum {string} */
            status: "open" | "processing" | "completed" | "cancelled" | "expired" | "failed";
            /** @description Where the buyer pays; null once it is no longer open. */
            url: string | null;
            /**
             * @description The payment provider.
             * @enum {string}
             */
            payment: "stripe" | "test";
            package_id: string | null;
            credits: number;
            /** @description In the currency's minor unit. */
            amount: number;
            /** @description ISO 4217, lower case. */
            currency: string;
            success_url: string;
            cancel_url: string;
            /** @description Until when it can be paid, in Unix seconds. */
            expires_at: number;
            /** @description Once it is paid. */
            purchase_id: string | null;
        };
        PurchaseList: {
            /** @constant */
            object: "list";
            data: components["schemas"]["Purchase"][];
            /** @description Whether there are items behind the last one. */
            has_more: boolean;
            /** @description Null where the page is empty. */
            first_id: string | null;
            /** @description `after` of the next page. */
            last_id: string | null;
        };
        Purchase: {
            id: string;
            /** @constant */
            object: "billing.purchase";
            /** @description Time of the payment, in Unix seconds. */
            created_at: number;
            checkout_id: string;
            transaction_id: string;
            /**
             * @description The payment provider.
             * @enum {string}
             */
            payment: "stripe" | "test";
            package_id: string | null;
            credits: number;
            /** @description In the currency's minor unit. */
            amount: number;
            /** @description ISO 4217, lower case. */
            currency: string;
            /** @description What was paid back, in minor units. */
            refunded_amount: number;
            /** @description What was taken back for it. */
            refunded_credits: number;
        };
        TransactionList: {
            /** @constant */
            object: "list";
            data: components["schemas"]["Transaction"][];
            /** @description Whether there are items behind the last one. */
            has_more: boolean;
            /** @description Null where the page is empty. */
            first_id: string | null;
            /** @description `after` of the next page. */
            last_id: string | null;
        };
        Transaction: {
            id: string;
            /** @constant */
            object: "billing.transaction";
            /** @description Time of the booking, in Unix seconds. */
            created_at: number;
            /** @enum {string} */
            type: "purchase" | "grant" | "usage" | "adjustment";
            /** @description Negative where credits were taken. */
            credits: number;
            balance_after: number;
            /** @description Of usage. */
            request_id: string | null;
            /** @description Of a purchase or a refund. */
            purchase_id: string | null;
            reason: string | null;
        };
        NewWebhook: {
            /** @description Where events are posted to: https, and a host on the public Internet. */
            url: string;
            /** @description Types of events: chat.completed, chat.failed, batch.completed, credits.purchased, credits.low, credits.depleted, budget.threshold_reached, budget.exceeded, key.created, key.revoked, key.expiring, moderation.flagged, entity.deleted, compliance.export.completed, compliance.deletion.completed, webhook.disabled, ping. */
            events: string[];
            /** @description For people. It must not have half a surrogate pair. */
            description?: string;
        };
        WebhookWithSecret: {
            id: string;
            /** @constant */
            object: "webhook";
            /** @description Time of creation, in Unix seconds. */
            created_at: number;
            url: string;
            events: components["schemas"]["WebhookEventType"][];
            description: string;
            /** @enum {string} */
            status: "active" | "disabled";
            /**
             * @description `request`: by you.
             * @enum {string|null}
             */
            disabled_reason: "request" | "gone" | "failing" | null;
            /** @description Time since which no attempt has succeeded, in Unix seconds. */
            failing_since: number | null;
            /** @description Until when an earlier secret signs as well, in Unix seconds. */
            previous_secret_expires_at: number | null;
            /** @description The secret that signs the requests, shown only once. */
            secret?: string;
        };
        /** @enum {string} */
        WebhookEventType: "chat.completed" | "chat.failed" | "batch.completed" | "credits.purchased" | "credits.low" | "credits.depleted" | "budget.threshold_reached" | "budget.exceeded" | "key.created" | "key.revoked" | "key.expiring" | "moderation.flagged" | "entity.deleted" | "compliance.export.completed" | "compliance.deletion.completed" | "webhook.disabled" | "ping";
        WebhookList: {
            /** @constant */
            object: "list";
            data: components["schemas"]["Webhook"][];
            /** @description Whether there are items behind the last one. */
            has_more: boolean;
            /** @description Null where the page is empty. */
            first_id: string | null;
            /** @description `after` of the next page. */
            last_id: string | null;
        };
        Webhook: {
            id: string;
            /** @constant */
            object: "webhook";
            /** @description Time of creation, in Unix seconds. */
            created_at: number;
            url: string;
            events: components["schemas"]["WebhookEventType"][];
            description: string;
            /** @enum {string} */
            status: "active" | "disabled";
            /**
             * @description `request`: by you.
             * @enum {string|null}
             */
            disabled_reason: "request" | "gone" | "failing" | null;
            /** @description Time since which no attempt has succeeded, in Unix seconds. */
            failing_since: number | null;
            /** @description Until when an earlier secret signs as well, in Unix seconds. */
            previous_secret_expires_at: number | null;
        };
        WebhookChanges: {
            /** @description Where events are posted to: https, and a host on the public Internet. */
            url?: string;
            /** @description Types of events: chat.completed, chat.failed, batch.completed, credits.purchased, credits.low, credits.depleted, budget.threshold_reached, budget.exceeded, key.created, key.revoked, key.expiring, moderation.flagged, entity.deleted, compliance.export.completed, compliance.deletion.completed, webhook.disabled, ping. */
            events?: string[];
            /** @description For people. It must not have half a surrogate pair. */
            description?: string;
            /**
             * @description `active` enables a webhook again that you or the service disabled.
             * @enum {string}
             */
            status?: "active" | "disabled";
        };
        DeletedWebhook: {
            id: string;
            /** @constant */
            object: "webhook";
            /** @constant */
            deleted: true;
        };
        WebhookSecretRotation: {
            /** @description How long the previous secret signs as well, in seconds; a day by default. */
            grace_seconds?: number;
        };
        WebhookDelivery: {
            id: string;
            /** @constant */
            object: "webhook.delivery";
            /** @description Time of creation, in Unix seconds. */
            created_at: number;
            webhook_id: string;
            event_id: string;
            event_type: components["schemas"]["WebhookEventType"];
            /** @enum {string} */
            status: "pending" | "succeeded" | "failed";
            /** @description Time of the next attempt, in Unix seconds. */
            next_attempt_at: number | null;
            /** @description The latest 50, oldest first. */
            attempts: {
                /** @description Time of the attempt, in Unix seconds. */
                created_at: number;
                duration_ms: number;
                /** @description The receiver's answer. */
                status_code: number | null;
                /** @description Why there was no answer, or why the answer was no success. */
                error: string | null;
            }[];
        };
        WebhookDeliveryList: {
            /** @constant */
            object: "list";
            data: components["schemas"]["WebhookDelivery"][];
            /** @description Whether there are items behind the last one. */
            has_more: boolean;
            /** @description Null where the page is empty. */
            first_id: string | null;
            /** @description `after` of the next page. */
            last_id: string | null;
        };
        NewComplianceExport: {
            /**
             * @description One entity, or all of the tenant.
             * @enum {string}
             */
            scope: "tenant" | "entity";
            /** @description With scope `entity`, and only then. It must not have half a surrogate pair. */
            entity_id?: string;
        };
        ComplianceExport: {
            id: string;
            /** @constant */
            object: "compliance.export";
            /** @description Time of creation, in Unix seconds. */
            created_at: number;
            /** @enum {string} */
            scope: "tenant" | "entity";
            entity_id: string | null;
            /** @description Stands for the entity once its id is deleted. */
            entity_hash: string | null;
            /** @enum {string} */
            status: "queued" | "in_progress" | "completed" | "failed";
            /** @description Time of completion, in Unix seconds. */
            completed_at: number | null;
            /** @description Why it failed. */
            error: string | null;
            /** @description Until when it can be downloaded, in Unix seconds. */
            expires_at: number | null;
            /** @description Of the archive. */
            bytes: number | null;
            /** @description Of the archive, in hex. */
            sha256: string | null;
            /** @description Null until there is an archive. */
            files: {
                name: string;
                rows: number;
                bytes: number;
                sha256: string;
            }[] | null;
        };
        ComplianceExportList: {
            /** @constant */
            object: "list";
            data: components["schemas"]["ComplianceExport"][];
            /** @description Whether there are items behind the last one. */
            has_more: boolean;
            /** @description Null where the page is empty. */
            first_id: string | null;
            /** @description `after` of the next page. */
            last_id: string | null;
        };
        NewComplianceDeletion: {
            /**
             * @description One entity, or all of the tenant.
             * @enum {string}
             */
            scope: "tenant" | "entity";
            /** @description With scope `entity`, and only then. It must not have half a surrogate pair. */
            entity_id?: string;
            /** @description For your own records; it is shown with the deletion and nowhere else. It must not have half a surrogate pair. */
            reason?: string;
        };
        ComplianceDeletion: {
            id: string;
            /** @constant */
            object: "compliance.deletion";
            /** @description Time of creation, in Unix seconds. */
            created_at: number;
            /** @enum {string} */
            scope: "tenant" | "entity";
            entity_id: string | null;
            /** @description Stands for the entity once its id is deleted. */
            entity_hash: string | null;
            /** @enum {string} */
            status: "queued" | "in_progress" | "completed" | "failed";
            /** @description Time of completion, in Unix seconds. */
            completed_at: number | null;
            /** @description Why it failed. */
            error: string | null;
            reason: string | null;
            /** @description How much was found so far, in every store. */
            report: {
                entity: number;
                history: number;
                streams: number;
                queued_jobs: number;
                answers: number;
                requests: number;
                idempotency_records: number;
                batches: number;
                webhook_payloads: number;
                exports: number;
                ledger_lines: number;
                usage_rollups: number;
                audit_entries: number;
            };
        };
        ComplianceDeletionList: {
            /** @constant */
            object: "list";
            data: components["schemas"]["ComplianceDeletion"][];
            /** @description Whether there are items behind the last one. */
            has_more: boolean;
            /** @description Null where the page is empty. */
            first_id: string | null;
            /** @description `after` of the next page. */
            last_id: string | null;
        };
        AuditLogList: {
            /** @constant */
            object: "list";
            data: components["schemas"]["AuditLogEntry"][];
            /** @description Whether there are items behind the last one. */
            has_more: boolean;
            /** @description Null where the page is empty. */
            first_id: string | null;
            /** @description `after` of the next page. */
            last_id: string | null;
        };
        AuditLogEntry: {
            id: string;
            /** @constant */
            object: "audit_log.entry";
            /** @description Time of the event, in Unix seconds. */
            created_at: number;
            /** @description The id of the API key, `administrator`, or `payment`. */
            actor: string;
            /**
             * @description `test`: a test key did it.
             * @enum {string}
             */
            mode: "live" | "test";
            /** @description What was done: `key.revoked`. */
            action: string;
            /** @description The id of the resource. */
            target: string;
            /** @description The request that did it. */
            request_id: string;
            /** @description Details for an auditor. */
            details: Record<string, never>;
        };
    };
    responses: {
        /**
         * @description `missing_api_key`: No API key was sent.
         *
         *     `invalid_api_key`: The API key is unknown, malformed or revoked.
         *
         *     `expired_api_key`: The API key has expired.
         */
        "401.missing_api_key.invalid_api_key.expired_api_key": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                "WWW-Authenticate": components["headers"]["WWW-Authenticate"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /**
         * @description `insufficient_credits`: The credits are used up, or held by requests in progress (`reason: "in_flight"`).
         *
         *     `budget_exceeded`: The monthly token budget is used up, or held by requests in progress.
         */
        "402.insufficient_credits.budget_exceeded": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                "Retry-After": components["headers"]["Retry-After"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /**
         * @description `endpoint_not_allowed`: The key's scopes do not cover this endpoint, or the call would grant more than the key has.
         *
         *     `account_suspended`: An administrator has suspended the account.
         */
        "403.endpoint_not_allowed.account_suspended": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `conflict`: The state of the resource does not allow this. */
        "409.conflict": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                "X-Should-Retry": components["headers"]["X-Should-Retry"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `gone`: The resource has expired. */
        "410.gone": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `idempotency_mismatch`: The `Idempotency-Key` was used with a different body. */
        "422.idempotency_mismatch": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /**
         * @description `rpm_exceeded`: A limit of requests is reached; the message names it.
         *
         *     `tpm_exceeded`: A limit of tokens is reached; the message names it.
         */
        "429.rpm_exceeded.tpm_exceeded": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                "Retry-After": components["headers"]["Retry-After"];
                "X-Should-Retry": components["headers"]["X-Should-Retry"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `internal_error`: The service failed. */
        "500.internal_error": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                "X-Should-Retry": components["headers"]["X-Should-Retry"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `model_unavailable`: No provider or store can serve the request at the moment. */
        "503.model_unavailable": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                "Retry-After": components["headers"]["Retry-After"];
                "X-Should-Retry": components["headers"]["X-Should-Retry"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `timeout`: The request reached its time limit. */
        "504.timeout": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                "X-Should-Retry": components["headers"]["X-Should-Retry"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /**
         * @description `invalid_request`: The request is malformed, or a field is missing or invalid; `param` names the field.
         *
         *     `message_too_long`: A message has more than 16,000 characters.
         *
         *     `too_many_messages`: `messages` has more than 100 items.
         *
         *     `context_length_exceeded`: The messages are too long for the model's context window.
         *
         *     `content_policy_violation`: Moderation flagged the messages.
         */
        "400.invalid_request.message_too_long.too_many_messages.context_length_exceeded.content_policy_violation": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `model_not_found`: There is no model with this name; the message names those that there are. */
        "404.model_not_found": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `invalid_request`: The request is malformed, or a field is missing or invalid; `param` names the field. */
        "400.invalid_request": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `rpm_exceeded`: A limit of requests is reached; the message names it. */
        "429.rpm_exceeded": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                "Retry-After": components["headers"]["Retry-After"];
                "X-Should-Retry": components["headers"]["X-Should-Retry"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /**
         * @description `invalid_request`: The request is malformed, or a field is missing or invalid; `param` names the field.
         *
         *     `context_length_exceeded`: The messages are too long for the model's context window.
         *
         *     `content_policy_violation`: Moderation flagged the messages.
         */
        "400.invalid_request.context_length_exceeded.content_policy_violation": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `not_found`: No such resource in this tenant. */
        "404.not_found": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /**
         * @description `invalid_request`: The request is malformed, or a field is missing or invalid; `param` names the field.
         *
         *     `context_length_exceeded`: The messages are too long for the model's context window.
         */
        "400.invalid_request.context_length_exceeded": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `payload_too_large`: The body is too large. */
        "413.payload_too_large": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `unsupported_media_type`: The endpoint does not accept this content type. */
        "415.unsupported_media_type": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `account_suspended`: An administrator has suspended the account. */
        "403.account_suspended": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /**
         * @description `model_not_found`: There is no model with this name; the message names those that there are.
         *
         *     `not_found`: No such resource in this tenant.
         */
        "404.model_not_found.not_found": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
    };
    parameters: {
        /** @description Makes the call safe to repeat for 24 hours: the same body gets the answer of the first call, another body 422. Per tenant, mode and family of paths. */
        "Idempotency-Key": string;
        /** @description Sent by OpenAI's clients: which try of a call this is. Above 0, it joins the request of an earlier try that nobody reads; an `Idempotency-Key` wins. */
        "X-Stainless-Retry-Count": string;
        /** @description The number of the last event received: the stream goes on behind it. It wins over `starting_after`; a POST reads it where its `Idempotency-Key` joins an earlier call. */
        "Last-Event-ID": string;
        /** @description `respond-async`: the answer is 202 at once; the completion is retrieved or streamed later (RFC 7240). */
        Prefer: string;
        /**
         * @description The request.
         * @example req_4fK2mZ8sQ1xY7bN3vC6tR9wE
         */
        requestId: string;
        /**
         * @description The name of the model, percent-encoded.
         * @example mobius
         */
        model: string;
        /**
         * @description The batch.
         * @example batch_1aB2cD3eF4gH5iJ6kL7mN8oP
         */
        batchId: string;
        /**
         * @description The API key.
         * @example key_9dJ3nR5wT7yU1pL8sA2fG4hK
         */
        keyId: string;
        /**
         * @description The caller's own id of the entity, percent-encoded.
         * @example pupil-7
         */
        entityId: string;
        /**
         * @description The checkout.
         * @example cs_3sD5fG7hJ9kL1qW2eR4tY6uI
         */
        checkoutId: string;
        /**
         * @description The webhook.
         * @example whk_2bV6cX8zM4nQ1wE5rT9yU7iO
         */
        webhookId: string;
        /**
         * @description The delivery.
         * @example dlv_7gH1jK3lP5oI9uY2tR6eW4qZ
         */
        deliveryId: string;
        /**
         * @description The export.
         * @example exp_1aB2cD3eF4gH5iJ6kL7mN8oP
         */
        exportId: string;
        /**
         * @description The deletion.
         * @example del_1aB2cD3eF4gH5iJ6kL7mN8oP
         */
        deletionId: string;
    };
    requestBodies: never;
    headers: {
        /** @description The id of the request; the same as `error.request_id`. */
        "X-Request-Id": string;
        /** @description The key's requests per minute; without a valid key the failed authentications per minute of the address. */
        "X-RateLimit-Limit-Requests": number;
        /** @description What remains of it in the current window; 0 where another limit of requests refuses the call. */
        "X-RateLimit-Remaining-Requests": number;
        /** @description Seconds until the window is empty; 0 when it is. Where another limit refuses the call, until that one admits it. */
        "X-RateLimit-Reset-Requests": number;
        /** @description The key's tokens per minute. */
        "X-RateLimit-Limit-Tokens": number;
        /** @description What remains of it in the current window. */
        "X-RateLimit-Remaining-Tokens": number;
        /** @description Seconds until the window is empty; 0 when it is. */
        "X-RateLimit-Reset-Tokens": number;
        /** @description The answer of an earlier call with the same `Idempotency-Key`, or of an earlier try of this call. */
        "Idempotent-Replayed": "true";
        /** @description Unknown fields of the body, which are ignored; percent-encoded and separated by commas. */
        "X-Ignored-Fields": string;
        /** @description Where the accepted resource can be retrieved. */
        Location: string;
        /** @description The caller does not wait for the answer. */
        "Preference-Applied": "respond-async";
        /** @description What the endpoint asks for (RFC 9110): a Bearer credential in `Authorization`. */
        "WWW-Authenticate": "Bearer";
        /** @description Seconds after which the same call is admitted if nothing else changes. */
        "Retry-After": number;
        /** @description Do not send the same again without being asked: it was cancelled, its key stands for a stream that broke off, or it passes in more than two minutes only. */
        "X-Should-Retry": "false";
        /** @description The name of the file. */
        "Content-Disposition": string;
        /** @description The SHA-256 of the file (RFC 9530). */
        "Repr-Digest": string;
        /** @description Changes with the content. */
        ETag: string;
    };
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    createChat: {
        parameters: {
            query?: never;
            header?: {
                /** @description Makes the call safe to repeat for 24 hours: the same body gets the answer of the first call, another body 422. Per tenant, mode and family of paths. */
                "Idempotency-Key"?: components["parameters"]["Idempotency-Key"];
                /** @description `respond-async`: the answer is 202 at once; the completion is retrieved or streamed later (RFC 7240). */
                Prefer?: string;
                /** @description Sent by OpenAI's clients: which try of a call this is. Above 0, it joins the request of an earlier try that nobody reads; an `Idempotency-Key` wins. */
                "X-Stainless-Retry-Count"?: components["parameters"]["X-Stainless-Retry-Count"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ChatBody"];
            };
        };
        responses: {
            /** @description The complete answer. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                    "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                    "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                    "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                    "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                    "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    "X-Ignored-Fields": components["headers"]["X-Ignored-Fields"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ChatCompletion"];
                };
            };
            /** @description Accepted; retrieve the answer at `Location`, or stream it. */
            202: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                    "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                    "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                    "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                    "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                    "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    Location: components["headers"]["Location"];
                    "Preference-Applied": components["headers"]["Preference-Applied"];
                    "X-Ignored-Fields": components["headers"]["X-Ignored-Fields"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AcceptedChatRequest"];
                };
            };
            /**
             * @description `invalid_request`: The request is malformed, or a field is missing or invalid; `param` names the field.
             *
             *     `message_too_long`: A message has more than 16,000 characters.
             *
             *     `too_many_messages`: `messages` has more than 100 items.
             *
             *     `context_length_exceeded`: The messages are too long for the model's context window.
             *
             *     `content_policy_violation`: Moderation flagged the messages.
             */
            400: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                    "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                    "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                    "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                    "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                    "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            401: components["responses"]["401.missing_api_key.invalid_api_key.expired_api_key"];
            402: components["responses"]["402.insufficient_credits.budget_exceeded"];
            403: components["responses"]["403.endpoint_not_allowed.account_suspended"];
            409: components["responses"]["409.conflict"];
            410: components["responses"]["410.gone"];
            422: components["responses"]["422.idempotency_mismatch"];
            429: components["responses"]["429.rpm_exceeded.tpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
            504: components["responses"]["504.timeout"];
        };
    };
    streamChat: {
        parameters: {
            query?: never;
            header?: {
                /** @description Makes the call safe to repeat for 24 hours: the same body gets the answer of the first call, another body 422. Per tenant, mode and family of paths. */
                "Idempotency-Key"?: components["parameters"]["Idempotency-Key"];
                /** @description The number of the last event received: the stream goes on behind it. It wins over `starting_after`; a POST reads it where its `Idempotency-Key` joins an earlier call. */
                "Last-Event-ID"?: components["parameters"]["Last-Event-ID"];
                /** @description Sent by OpenAI's clients: which try of a call this is. Above 0, it joins the request of an earlier try that nobody reads; an `Idempotency-Key` wins. */
                "X-Stainless-Retry-Count"?: components["parameters"]["X-Stainless-Retry-Count"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ChatStreamBody"];
            };
        };
        responses: {
            /** @description The answer as it is generated. Server-Sent Events. Each `data:` line is one chunk as JSON, the last one `[DONE]`; `id:` numbers the events from 1. A line that begins with a colon is a heartbeat. A stream that fails ends with a chunk that has `error`, without `[DONE]`. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                    "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                    "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                    "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                    "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                    "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    "X-Ignored-Fields": components["headers"]["X-Ignored-Fields"];
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": components["schemas"]["ChatCompletionChunk"];
                };
            };
            400: components["responses"]["400.invalid_request.message_too_long.too_many_messages.context_length_exceeded.content_policy_violation"];
            401: components["responses"]["401.missing_api_key.invalid_api_key.expired_api_key"];
            402: components["responses"]["402.insufficient_credits.budget_exceeded"];
            403: components["responses"]["403.endpoint_not_allowed.account_suspended"];
            409: components["responses"]["409.conflict"];
            410: components["responses"]["410.gone"];
            422: components["responses"]["422.idempotency_mismatch"];
            429: components["responses"]["429.rpm_exceeded.tpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
            504: components["responses"]["504.timeout"];
        };
    };
    createChatCompletion: {
        parameters: {
            query?: never;
            header?: {
                /** @description Makes the call safe to repeat for 24 hours: the same body gets the answer of the first call, another body 422. Per tenant, mode and family of paths. */
                "Idempotency-Key"?: components["parameters"]["Idempotency-Key"];
                /** @description `respond-async`: the answer is 202 at once; the completion is retrieved or streamed later (RFC 7240). */
                Prefer?: components["parameters"]["Prefer"];
                /** @description The number of the last event received: the stream goes on behind it. It wins over `starting_after`; a POST reads it where its `Idempotency-Key` joins an earlier call. */
                "Last-Event-ID"?: components["parameters"]["Last-Event-ID"];
                /** @description Sent by OpenAI's clients: which try of a call this is. Above 0, it joins the request of an earlier try that nobody reads; an `Idempotency-Key` wins. */
                "X-Stainless-Retry-Count"?: components["parameters"]["X-Stainless-Retry-Count"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["CompletionsBody"];
            };
        };
        responses: {
            /** @description The complete answer, or with `stream: true` the answer as it is generated. Server-Sent Events. Each `data:` line is one chunk as JSON, the last one `[DONE]`; there is no `id:`, but `starting_after` of `GET /chat/stream/{request_id}` counts the events from 1. A line that begins with a colon is a heartbeat. A stream that fails ends with a chunk that has `error`, without `[DONE]`. Behind that chunk the error comes once more, as an object of its own. The finish reasons are those of OpenAI: where a request failed or was cancelled it is `stop`, beside a top-level `error`. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                    "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                    "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                    "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                    "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                    "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    "X-Ignored-Fields": components["headers"]["X-Ignored-Fields"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ChatCompletion"];
                    "text/event-stream": components["schemas"]["CompletionsChunk"];
                };
            };
            /** @description Accepted; retrieve the answer at `Location`, or stream it. */
            202: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                    "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                    "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                    "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                    "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                    "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    Location: components["headers"]["Location"];
                    "Preference-Applied": components["headers"]["Preference-Applied"];
                    "X-Ignored-Fields": components["headers"]["X-Ignored-Fields"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AcceptedChatRequest"];
                };
            };
            400: components["responses"]["400.invalid_request.message_too_long.too_many_messages.context_length_exceeded.content_policy_violation"];
            401: components["responses"]["401.missing_api_key.invalid_api_key.expired_api_key"];
            402: components["responses"]["402.insufficient_credits.budget_exceeded"];
            403: components["responses"]["403.endpoint_not_allowed.account_suspended"];
            404: components["responses"]["404.model_not_found"];
            409: components["responses"]["409.conflict"];
            410: components["responses"]["410.gone"];
            422: components["responses"]["422.idempotency_mismatch"];
            429: components["responses"]["429.rpm_exceeded.tpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
            504: components["responses"]["504.timeout"];
        };
    };
    listChatRequests: {
        parameters: {
            query?: {
                /** @description Only with this status. */
                status?: "completed" | "failed" | "cancelled" | "refused";
                /** @description Only of this tier. */
                model?: "mobius" | "oloid" | "embedding" | "moderation";
                /** @description Only of this key. */
                key_id?: string;
                /** @description Only with this code. */
                error_code?: "missing_api_key" | "invalid_api_key" | "expired_api_key" | "endpoint_not_allowed" | "account_suspended" | "insufficient_credits" | "budget_exceeded" | "rpm_exceeded" | "tpm_exceeded" | "invalid_request" | "message_too_long" | "too_many_messages" | "context_length_exceeded" | "content_policy_violation" | "model_unavailable" | "timeout" | "model_not_found" | "not_found" | "gone" | "method_not_allowed" | "payload_too_large" | "unsupported_media_type" | "conflict" | "idempotency_mismatch" | "internal_error";
                /** @description Only then or later, in Unix seconds. */
                start_time?: string;
                /** @description Only before then, in Unix seconds. */
                end_time?: string;
                /** @description How many items a page may have. */
                limit?: number;
                /** @description The id of the last item of the page before: `last_id`. */
                after?: string;
                /** @description By time of creation: `desc` is newest first. */
                order?: "asc" | "desc";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of requests. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                    "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                    "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                    "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                    "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                    "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ChatRequestList"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key.expired_api_key"];
            403: components["responses"]["403.endpoint_not_allowed.account_suspended"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    resumeChatStream: {
        parameters: {
            query?: {
                /** @description The number of the last event that the client has; `Last-Event-ID` wins over it. */
                starting_after?: number;
            };
            header?: {
                /** @description The number of the last event received: the stream goes on behind it. It wins over `starting_after`; a POST reads it where its `Idempotency-Key` joins an earlier call. */
                "Last-Event-ID"?: components["parameters"]["Last-Event-ID"];
            };
            path: {
                /**
                 * @description The request.
                 * @example req_4fK2mZ8sQ1xY7bN3vC6tR9wE
                 */
                request_id: components["parameters"]["requestId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The rest of the stream. Server-Sent Events. Each `data:` line is one chunk as JSON, the last one `[DONE]`; `id:` numbers the events from 1. A line that begins with a colon is a heartbeat. A stream that fails ends with a chunk that has `error`, without `[DONE]`. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                    "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                    "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                    "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                    "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                    "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": components["schemas"]["ChatCompletionChunk"];
                };
            };
            /** @description The client has received the whole stream. */
            204: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                    "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                    "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                    "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                    "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                    "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                    [name: string]: unknown;
                };
                content?: never;
            };
            400: components["responses"]["400.invalid_request.context_length_exceeded.content_policy_violation"];
            401: components["responses"]["401.missing_api_key.invalid_api_key.expired_api_key"];
            402: components["responses"]["402.insufficient_credits.budget_exceeded"];
            403: components["responses"]["403.endpoint_not_allowed.account_suspended"];
            404: components["responses"]["404.not_found"];
            409: components["responses"]["409.conflict"];
            410: components["responses"]["410.gone"];
            429: components["responses"]["429.rpm_exceeded.tpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
            504: components["responses"]["504.timeout"];
        };
    };
    getChatRequest: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The request.
                 * @example req_4fK2mZ8sQ1xY7bN3vC6tR9wE
                 */
                request_id: components["parameters"]["requestId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The request. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                    "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                    "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                    "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                    "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                    "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ChatRequestState"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key.expired_api_key"];
            403: components["responses"]["403.endpoint_not_allowed.account_suspended"];
            404: components["responses"]["404.not_found"];
            410: components["responses"]["410.gone"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    cancelChatRequest: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The request.
                 * @example req_4fK2mZ8sQ1xY7bN3vC6tR9wE
                 */
                request_id: components["parameters"]["requestId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The request. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                    "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                    "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                    "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                    "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                    "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ChatRequestState"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key.expired_api_key"];
            403: components["responses"]["403.endpoint_not_allowed.account_suspended"];
            404: components["responses"]["404.not_found"];
            410: components["responses"]["410.gone"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    createEmbeddings: {
        parameters: {
            query?: never;
            header?: {
                /** @description Makes the call safe to repeat for 24 hours: the same body gets the answer of the first call, another body 422. Per tenant, mode and family of paths. */
                "Idempotency-Key"?: components["parameters"]["Idempotency-Key"];
                /** @description Sent by OpenAI's clients: which try of a call this is. Above 0, it joins the request of an earlier try that nobody reads; an `Idempotency-Key` wins. */
                "X-Stainless-Retry-Count"?: components["parameters"]["X-Stainless-Retry-Count"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["EmbeddingsBody"];
            };
        };
        responses: {
            /** @description A vector for each input, in their order. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                    "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                    "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                    "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                    "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                    "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    "X-Ignored-Fields": components["headers"]["X-Ignored-Fields"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EmbeddingList"];
                };
            };
            400: components["responses"]["400.invalid_request.context_length_exceeded"];
            401: components["responses"]["401.missing_api_key.invalid_api_key.expired_api_key"];
            403: components["responses"]["403.endpoint_not_allowed.account_suspended"];
            404: components["responses"]["404.model_not_found"];
            409: components["responses"]["409.conflict"];
            413: components["responses"]["413.payload_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            422: components["responses"]["422.idempotency_mismatch"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    createModeration: {
        parameters: {
            query?: never;
            header?: {
                /** @description Makes the call safe to repeat for 24 hours: the same body gets the answer of the first call, another body 422. Per tenant, mode and family of paths. */
                "Idempotency-Key"?: components["parameters"]["Idempotency-Key"];
                /** @description Sent by OpenAI's clients: which try of a call this is. Above 0, it joins the request of an earlier try that nobody reads; an `Idempotency-Key` wins. */
                "X-Stainless-Retry-Count"?: components["parameters"]["X-Stainless-Retry-Count"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ModerationsBody"];
            };
        };
        responses: {
            /** @description A verdict for each input, in their order. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                    "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                    "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                    "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                    "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                    "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    "X-Ignored-Fields": components["headers"]["X-Ignored-Fields"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Moderation"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key.expired_api_key"];
            403: components["responses"]["403.endpoint_not_allowed.account_suspended"];
            409: components["responses"]["409.conflict"];
            413: components["responses"]["413.payload_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            422: components["responses"]["422.idempotency_mismatch"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    listModels: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The models. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                    "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                    "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                    "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                    "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                    "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ModelList"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key.expired_api_key"];
            403: components["responses"]["403.account_suspended"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    getModel: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The name of the model, percent-encoded.
                 * @example mobius
                 */
                model: components["parameters"]["model"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The model. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                    "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                    "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                    "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                    "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                    "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Model"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key.expired_api_key"];
            403: components["responses"]["403.account_suspended"];
            404: components["responses"]["404.model_not_found.not_found"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    listBatches: {
        parameters: {
            query?: {
                /** @description How many items a page may have. */
                limit?: number;
                /** @description The id of the last item of the page before: `last_id`. */
                after?: string;
                /** @description By time of creation: `desc` is newest first. */
                order?: "asc" | "desc";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of batches. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                    "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                    "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                    "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                    "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                    "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BatchList"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key.expired_api_key"];
            403: components["responses"]["403.endpoint_not_allowed.account_suspended"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    createBatch: {
        parameters: {
            query?: never;
            header?: {
                /** @description Makes the call safe to repeat for 24 hours: the same body gets the answer of the first call, another body 422. Per tenant, mode and family of paths. */
                "Idempotency-Key"?: components["parameters"]["Idempotency-Key"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewBatch"];
                "application/x-ndjson": components["schemas"]["BatchItem"];
            };
        };
        responses: {
            /** @description The batch; its state is at `Location`. */
            202: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                    "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                    "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                    "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                    "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                    "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    Location: components["headers"]["Location"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Batch"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key.expired_api_key"];
            403: components["responses"]["403.endpoint_not_allowed.account_suspended"];
            409: components["responses"]["409.conflict"];
            413: components["responses"]["413.payload_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            422: components["responses"]["422.idempotency_mismatch"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    getBatch: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The batch.
                 * @example batch_1aB2cD3eF4gH5iJ6kL7mN8oP
                 */
                batch_id: components["parameters"]["batchId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The batch. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                    "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                    "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                    "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                    "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                    "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Batch"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key.expired_api_key"];
            403: components["responses"]["403.endpoint_not_allowed.account_suspended"];
            404: components["responses"]["404.not_found"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    cancelBatch: {
        parameters: {
            query?: never;
            header?: {
                /** @description Makes the call safe to repeat for 24 hours: the same body gets the answer of the first call, another body 422. Per tenant, mode and family of paths. */
                "Idempotency-Key"?: components["parameters"]["Idempotency-Key"];
            };
            path: {
                /**
                 * @description The batch.
                 * @example batch_1aB2cD3eF4gH5iJ6kL7mN8oP
                 */
                batch_id: components["parameters"]["batchId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The batch. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                    "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                    "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                    "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                    "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                    "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Batch"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key.expired_api_key"];
            403: components["responses"]["403.endpoint_not_allowed.account_suspended"];
            404: components["responses"]["404.not_found"];
            409: components["responses"]["409.conflict"];
            422: components["responses"]["422.idempotency_mismatch"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    getBatchResults: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The batch.
                 * @example batch_1aB2cD3eF4gH5iJ6kL7mN8oP
                 */
                batch_id: components["parameters"]["batchId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Lines of JSON. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                    "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                    "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                    "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                    "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                    "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                    [name: string]: unknown;
                };
                content: {
                    "application/x-ndjson": components["schemas"]["BatchResult"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key.expired_api_key"];
            403: components["responses"]["403.endpoint_not_allowed.account_suspended"];
            404: components["responses"]["404.not_found"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    listKeys: {
        parameters: {
            query?: {
                /** @description How many items a page may have. */
                limit?: number;
                /** @description The id of the last item of the page before: `last_id`. */
                after?: string;
                /** @description By time of creation: `desc` is newest first. */
                order?: "asc" | "desc";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of keys. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                    "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                    "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                    "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                    "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                    "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiKeyList"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key.expired_api_key"];
            403: components["responses"]["403.endpoint_not_allowed.account_suspended"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    createKey: {
        parameters: {
            query?: never;
            header?: {
                /** @description Makes the call safe to repeat for 24 hours: the same body gets the answer of the first call, another body 422. Per tenant, mode and family of paths. */
                "Idempotency-Key"?: components["parameters"]["Idempotency-Key"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewApiKey"];
            };
        };
        responses: {
            /** @description The key, with its value. */
            201: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                    "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                    "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                    "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                    "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                    "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiKeyWithValue"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key.expired_api_key"];
            403: components["responses"]["403.endpoint_not_allowed.account_suspended"];
            409: components["responses"]["409.conflict"];
            413: components["responses"]["413.payload_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            422: components["responses"]["422.idempotency_mismatch"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    getCallingKey: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The key that the call was made with. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                    "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                    "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                    "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                    "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                    "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiKey"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key.expired_api_key"];
            403: components["responses"]["403.account_suspended"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    getKey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The API key.
                 * @example key_9dJ3nR5wT7yU1pL8sA2fG4hK
                 */
                key_id: components["parameters"]["keyId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The key. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                    "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                    "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                    "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                    "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                    "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiKey"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key.expired_api_key"];
            403: components["responses"]["403.endpoint_not_allowed.account_suspended"];
            404: components["responses"]["404.not_found"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    revokeKey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The API key.
                 * @example key_9dJ3nR5wT7yU1pL8sA2fG4hK
                 */
                key_id: components["parameters"]["keyId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The key is revoked. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                    "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                    "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                    "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                    "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                    "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeletedApiKey"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key.expired_api_key"];
            403: components["responses"]["403.endpoint_not_allowed.account_suspended"];
            404: components["responses"]["404.not_found"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    updateKey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The API key.
                 * @example key_9dJ3nR5wT7yU1pL8sA2fG4hK
                 */
                key_id: components["parameters"]["keyId"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ApiKeyChanges"];
            };
        };
        responses: {
            /** @description The updated key. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                    "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                    "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                    "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                    "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                    "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiKey"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key.expired_api_key"];
            403: components["responses"]["403.endpoint_not_allowed.account_suspended"];
            404: components["responses"]["404.not_found"];
            409: components["responses"]["409.conflict"];
            413: components["responses"]["413.payload_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    rotateKey: {
        parameters: {
            query?: never;
            header?: {
                /** @description Makes the call safe to repeat for 24 hours: the same body gets the answer of the first call, another body 422. Per tenant, mode and family of paths. */
                "Idempotency-Key"?: components["parameters"]["Idempotency-Key"];
            };
            path: {
                /**
                 * @description The API key.
                 * @example key_9dJ3nR5wT7yU1pL8sA2fG4hK
                 */
                key_id: components["parameters"]["keyId"];
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ApiKeyRotation"];
            };
        };
        responses: {
            /** @description The key, with its value. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                    "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                    "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                    "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                    "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                    "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiKeyWithValue"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key.expired_api_key"];
            403: components["responses"]["403.endpoint_not_allowed.account_suspended"];
            404: components["responses"]["404.not_found"];
            409: components["responses"]["409.conflict"];
            413: components["responses"]["413.payload_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            422: components["responses"]["422.idempotency_mismatch"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    listEntities: {
        parameters: {
            query?: {
                /** @description How many items a page may have. */
                limit?: number;
                /** @description The id of the last item of the page before: `last_id`. */
                after?: string;
                /** @description By time of creation: `desc` is newest first. */
                order?: "asc" | "desc";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of entities. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                    "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                    "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                    "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                    "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                    "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EntityList"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key.expired_api_key"];
            403: components["responses"]["403.endpoint_not_allowed.account_suspended"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    createEntity: {
        parameters: {
            query?: never;
            header?: {
                /** @description Makes the call safe to repeat for 24 hours: the same body gets the answer of the first call, another body 422. Per tenant, mode and family of paths. */
                "Idempotency-Key"?: components["parameters"]["Idempotency-Key"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewEntity"];
            };
        };
        responses: {
            /** @description The entity. */
            201: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                    "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                    "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                    "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                    "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                    "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Entity"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key.expired_api_key"];
            403: components["responses"]["403.endpoint_not_allowed.account_suspended"];
            409: components["responses"]["409.conflict"];
            413: components["responses"]["413.payload_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            422: components["responses"]["422.idempotency_mismatch"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    getEntity: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The caller's own id of the entity, percent-encoded.
                 * @example pupil-7
                 */
                entity_id: components["parameters"]["entityId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The entity. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                    "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                    "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                    "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                    "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                    "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Entity"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key.expired_api_key"];
            403: components["responses"]["403.endpoint_not_allowed.account_suspended"];
            404: components["responses"]["404.not_found"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    putEntity: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The caller's own id of the entity, percent-encoded.
                 * @example pupil-7
                 */
                entity_id: components["parameters"]["entityId"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["EntityFields"];
            };
        };
        responses: {
            /** @description The replaced entity. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                    "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                    "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                    "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                    "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                    "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Entity"];
                };
            };
            /** @description The created entity. */
            201: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                    "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                    "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                    "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                    "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                    "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Entity"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key.expired_api_key"];
            403: components["responses"]["403.endpoint_not_allowed.account_suspended"];
            404: components["responses"]["404.not_found"];
            409: components["responses"]["409.conflict"];
            413: components["responses"]["413.payload_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    deleteEntity: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The caller's own id of the entity, percent-encoded.
                 * @example pupil-7
                 */
                entity_id: components["parameters"]["entityId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The entity is deleted. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                    "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                    "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                    "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                    "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                    "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeletedEntity"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key.expired_api_key"];
            403: components["responses"]["403.endpoint_not_allowed.account_suspended"];
            404: components["responses"]["404.not_found"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    updateEntity: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The caller's own id of the entity, percent-encoded.
                 * @example pupil-7
                 */
                entity_id: components["parameters"]["entityId"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["EntityChanges"];
            };
        };
        responses: {
            /** @description The updated entity. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                    "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                    "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                    "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                    "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                    "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Entity"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key.expired_api_key"];
            403: components["responses"]["403.endpoint_not_allowed.account_suspended"];
            404: components["responses"]["404.not_found"];
            409: components["responses"]["409.conflict"];
            413: components["responses"]["413.payload_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    getEntityHistory: {
        parameters: {
            query?: {
                /** @description How many items a page may have. */
                limit?: number;
                /** @description The id of the last item of the page before: `last_id`. */
                after?: string;
                /** @description By time of creation: `desc` is newest first. */
                order?: "asc" | "desc";
            };
            header?: never;
            path: {
                /**
                 * @description The caller's own id of the entity, percent-encoded.
                 * @example pupil-7
                 */
                entity_id: components["parameters"]["entityId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of messages. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                    "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                    "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                    "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                    "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                    "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["EntityMessageList"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key.expired_api_key"];
            403: components["responses"]["403.endpoint_not_allowed.account_suspended"];
            404: components["responses"]["404.not_found"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    deleteEntityHistory: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The caller's own id of the entity, percent-encoded.
                 * @example pupil-7
                 */
                entity_id: components["parameters"]["entityId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The history is deleted. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                    "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                    "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                    "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                    "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                    "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeletedEntityHistory"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key.expired_api_key"];
            403: components["responses"]["403.endpoint_not_allowed.account_suspended"];
            404: components["responses"]["404.not_found"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    getUsage: {
        parameters: {
            query?: {
                /** @description From the bucket that this falls into, in Unix seconds; the start of end_time's month by default. */
                start_time?: number;
                /** @description Up to the bucket that this ends in, in Unix seconds; now by default. */
                end_time?: number;
                /** @description `1d` by default. Minutes are kept for 35 days. */
                bucket_width?: "1m" | "1h" | "1d";
                /** @description Buckets on a page: by default 31 days, 24 hours or 60 minutes. */
                limit?: number;
                /** @description `next_page` of the page before, with the same other parameters. */
                page?: string;
                /** @description Group the sums by these: separated by commas, or repeated. */
                group_by?: ("key_id" | "model" | "entity_id" | "mode" | "endpoint")[];
                /** @description Only of these keys; may be repeated, like every filter. */
                key_id?: string[];
                /** @description Only of these tiers. */
                model?: ("mobius" | "oloid" | "embedding")[];
                /** @description Only with these entities. */
                entity_id?: string[];
                /** @description Only of live or of test keys. */
                mode?: ("live" | "test")[];
                /** @description Only of these endpoints: `chat`, `chat.stream`, `batch`. */
                endpoint?: string[];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of buckets, oldest first. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                    "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                    "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                    "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                    "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                    "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UsagePage"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key.expired_api_key"];
            403: components["responses"]["403.endpoint_not_allowed.account_suspended"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    listUsageRequests: {
        parameters: {
            query?: {
                /** @description How many items a page may have. */
                limit?: number;
                /** @description The id of the last item of the page before: `last_id`. */
                after?: string;
                /** @description By time of creation: `desc` is newest first. */
                order?: "asc" | "desc";
                /** @description Only of these keys; may be repeated, like every filter. */
                key_id?: string[];
                /** @description Only with these entities. */
                entity_id?: string[];
                /** @description Only of these tiers. */
                model?: ("mobius" | "oloid" | "embedding")[];
                /** @description Only of live or of test keys. */
                mode?: ("live" | "test")[];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of requests. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                    "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                    "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                    "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                    "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                    "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["UsageRequestList"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key.expired_api_key"];
            403: components["responses"]["403.endpoint_not_allowed.account_suspended"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    getBilling: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The figures by which requests are admitted. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                    "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                    "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                    "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                    "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                    "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BillingStatus"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key.expired_api_key"];
            403: components["responses"]["403.endpoint_not_allowed.account_suspended"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    listBillingPackages: {
        parameters: {
            query?: {
                /** @description How many items a page may have. */
                limit?: number;
                /** @description The id of the last item of the page before: `last_id`. */
                after?: string;
                /** @description By time of creation: `desc` is newest first. */
                order?: "asc" | "desc";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of packages, and the price of free amounts. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                    "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                    "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                    "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                    "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                    "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CreditPackageList"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key.expired_api_key"];
            403: components["responses"]["403.endpoint_not_allowed.account_suspended"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    createCheckout: {
        parameters: {
            query?: never;
            header?: {
                /** @description Makes the call safe to repeat for 24 hours: the same body gets the answer of the first call, another body 422. Per tenant, mode and family of paths. */
                "Idempotency-Key"?: components["parameters"]["Idempotency-Key"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewCheckout"];
            };
        };
        responses: {
            /** @description The checkout. */
            201: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                    "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                    "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                    "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                    "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                    "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Checkout"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key.expired_api_key"];
            403: components["responses"]["403.endpoint_not_allowed.account_suspended"];
            404: components["responses"]["404.not_found"];
            409: components["responses"]["409.conflict"];
            413: components["responses"]["413.payload_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            422: components["responses"]["422.idempotency_mismatch"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    getCheckout: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The checkout.
                 * @example cs_3sD5fG7hJ9kL1qW2eR4tY6uI
                 */
                checkout_id: components["parameters"]["checkoutId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The checkout. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                    "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                    "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                    "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                    "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                    "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Checkout"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key.expired_api_key"];
            403: components["responses"]["403.endpoint_not_allowed.account_suspended"];
            404: components["responses"]["404.not_found"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    listPurchases: {
        parameters: {
            query?: {
                /** @description How many items a page may have. */
                limit?: number;
                /** @description The id of the last item of the page before: `last_id`. */
                after?: string;
                /** @description By time of creation: `desc` is newest first. */
                order?: "asc" | "desc";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of purchases. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                    "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                    "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                    "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                    "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                    "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PurchaseList"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key.expired_api_key"];
            403: components["responses"]["403.endpoint_not_allowed.account_suspended"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    listTransactions: {
        parameters: {
            query?: {
                /** @description Entries of this type only. */
                type?: "purchase" | "grant" | "usage" | "adjustment";
                /** @description How many items a page may have. */
                limit?: number;
                /** @description The id of the last item of the page before: `last_id`. */
                after?: string;
                /** @description By time of creation: `desc` is newest first. */
                order?: "asc" | "desc";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of the ledger. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                    "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                    "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                    "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                    "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                    "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TransactionList"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key.expired_api_key"];
            403: components["responses"]["403.endpoint_not_allowed.account_suspended"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    listWebhooks: {
        parameters: {
            query?: {
                /** @description How many items a page may have. */
                limit?: number;
                /** @description The id of the last item of the page before: `last_id`. */
                after?: string;
                /** @description By time of creation: `desc` is newest first. */
                order?: "asc" | "desc";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of webhooks. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                    "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                    "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                    "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                    "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                    "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookList"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key.expired_api_key"];
            403: components["responses"]["403.endpoint_not_allowed.account_suspended"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    createWebhook: {
        parameters: {
            query?: never;
            header?: {
                /** @description Makes the call safe to repeat for 24 hours: the same body gets the answer of the first call, another body 422. Per tenant, mode and family of paths. */
                "Idempotency-Key"?: components["parameters"]["Idempotency-Key"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewWebhook"];
            };
        };
        responses: {
            /** @description The webhook, with its secret. */
            201: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                    "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                    "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                    "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                    "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                    "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookWithSecret"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key.expired_api_key"];
            403: components["responses"]["403.endpoint_not_allowed.account_suspended"];
            409: components["responses"]["409.conflict"];
            413: components["responses"]["413.payload_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            422: components["responses"]["422.idempotency_mismatch"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    getWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The webhook.
                 * @example whk_2bV6cX8zM4nQ1wE5rT9yU7iO
                 */
                webhook_id: components["parameters"]["webhookId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The webhook. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                    "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                    "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                    "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                    "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                    "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Webhook"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key.expired_api_key"];
            403: components["responses"]["403.endpoint_not_allowed.account_suspended"];
            404: components["responses"]["404.not_found"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    deleteWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The webhook.
                 * @example whk_2bV6cX8zM4nQ1wE5rT9yU7iO
                 */
                webhook_id: components["parameters"]["webhookId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The webhook is deleted. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                    "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                    "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                    "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                    "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                    "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeletedWebhook"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key.expired_api_key"];
            403: components["responses"]["403.endpoint_not_allowed.account_suspended"];
            404: components["responses"]["404.not_found"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    updateWebhook: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The webhook.
                 * @example whk_2bV6cX8zM4nQ1wE5rT9yU7iO
                 */
                webhook_id: components["parameters"]["webhookId"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["WebhookChanges"];
            };
        };
        responses: {
            /** @description The updated webhook. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                    "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                    "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                    "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                    "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                    "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Webhook"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key.expired_api_key"];
            403: components["responses"]["403.endpoint_not_allowed.account_suspended"];
            404: components["responses"]["404.not_found"];
            413: components["responses"]["413.payload_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    rotateWebhookSecret: {
        parameters: {
            query?: never;
            header?: {
                /** @description Makes the call safe to repeat for 24 hours: the same body gets the answer of the first call, another body 422. Per tenant, mode and family of paths. */
                "Idempotency-Key"?: components["parameters"]["Idempotency-Key"];
            };
            path: {
                /**
                 * @description The webhook.
                 * @example whk_2bV6cX8zM4nQ1wE5rT9yU7iO
                 */
                webhook_id: components["parameters"]["webhookId"];
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["WebhookSecretRotation"];
            };
        };
        responses: {
            /** @description The webhook, with its secret. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                    "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                    "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                    "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                    "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                    "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookWithSecret"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key.expired_api_key"];
            403: components["responses"]["403.endpoint_not_allowed.account_suspended"];
            404: components["responses"]["404.not_found"];
            409: components["responses"]["409.conflict"];
            413: components["responses"]["413.payload_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            422: components["responses"]["422.idempotency_mismatch"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    testWebhook: {
        parameters: {
            query?: never;
            header?: {
                /** @description Makes the call safe to repeat for 24 hours: the same body gets the answer of the first call, another body 422. Per tenant, mode and family of paths. */
                "Idempotency-Key"?: components["parameters"]["Idempotency-Key"];
            };
            path: {
                /**
                 * @description The webhook.
                 * @example whk_2bV6cX8zM4nQ1wE5rT9yU7iO
                 */
                webhook_id: components["parameters"]["webhookId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The first attempt is made at once. */
            202: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                    "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                    "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                    "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                    "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                    "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    Location: components["headers"]["Location"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookDelivery"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key.expired_api_key"];
            403: components["responses"]["403.endpoint_not_allowed.account_suspended"];
            404: components["responses"]["404.not_found"];
            409: components["responses"]["409.conflict"];
            422: components["responses"]["422.idempotency_mismatch"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    listDeliveries: {
        parameters: {
            query?: {
                /** @description How many items a page may have. */
                limit?: number;
                /** @description The id of the last item of the page before: `last_id`. */
                after?: string;
                /** @description By time of creation: `desc` is newest first. */
                order?: "asc" | "desc";
            };
            header?: never;
            path: {
                /**
                 * @description The webhook.
                 * @example whk_2bV6cX8zM4nQ1wE5rT9yU7iO
                 */
                webhook_id: components["parameters"]["webhookId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of deliveries. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                    "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                    "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                    "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                    "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                    "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookDeliveryList"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key.expired_api_key"];
            403: components["responses"]["403.endpoint_not_allowed.account_suspended"];
            404: components["responses"]["404.not_found"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    getDelivery: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The webhook.
                 * @example whk_2bV6cX8zM4nQ1wE5rT9yU7iO
                 */
                webhook_id: components["parameters"]["webhookId"];
                /**
                 * @description The delivery.
                 * @example dlv_7gH1jK3lP5oI9uY2tR6eW4qZ
                 */
                delivery_id: components["parameters"]["deliveryId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The delivery. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                    "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                    "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                    "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                    "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                    "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookDelivery"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key.expired_api_key"];
            403: components["responses"]["403.endpoint_not_allowed.account_suspended"];
            404: components["responses"]["404.not_found"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    redeliver: {
        parameters: {
            query?: never;
            header?: {
                /** @description Makes the call safe to repeat for 24 hours: the same body gets the answer of the first call, another body 422. Per tenant, mode and family of paths. */
                "Idempotency-Key"?: components["parameters"]["Idempotency-Key"];
            };
            path: {
                /**
                 * @description The webhook.
                 * @example whk_2bV6cX8zM4nQ1wE5rT9yU7iO
                 */
                webhook_id: components["parameters"]["webhookId"];
                /**
                 * @description The delivery.
                 * @example dlv_7gH1jK3lP5oI9uY2tR6eW4qZ
                 */
                delivery_id: components["parameters"]["deliveryId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The first attempt is made at once. */
            202: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                    "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                    "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                    "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                    "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                    "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    Location: components["headers"]["Location"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["WebhookDelivery"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key.expired_api_key"];
            403: components["responses"]["403.endpoint_not_allowed.account_suspended"];
            404: components["responses"]["404.not_found"];
            409: components["responses"]["409.conflict"];
            422: components["responses"]["422.idempotency_mismatch"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    listExports: {
        parameters: {
            query?: {
                /** @description How many items a page may have. */
                limit?: number;
                /** @description The id of the last item of the page before: `last_id`. */
                after?: string;
                /** @description By time of creation: `desc` is newest first. */
                order?: "asc" | "desc";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of exports. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                    "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                    "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                    "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                    "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                    "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ComplianceExportList"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key.expired_api_key"];
            403: components["responses"]["403.endpoint_not_allowed.account_suspended"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    createExport: {
        parameters: {
            query?: never;
            header?: {
                /** @description Makes the call safe to repeat for 24 hours: the same body gets the answer of the first call, another body 422. Per tenant, mode and family of paths. */
                "Idempotency-Key"?: components["parameters"]["Idempotency-Key"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewComplianceExport"];
            };
        };
        responses: {
            /** @description The export; its state is at `Location`. */
            202: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                    "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                    "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                    "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                    "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                    "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    Location: components["headers"]["Location"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ComplianceExport"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key.expired_api_key"];
            403: components["responses"]["403.endpoint_not_allowed.account_suspended"];
            409: components["responses"]["409.conflict"];
            413: components["responses"]["413.payload_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            422: components["responses"]["422.idempotency_mismatch"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    getExport: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The export.
                 * @example exp_1aB2cD3eF4gH5iJ6kL7mN8oP
                 */
                export_id: components["parameters"]["exportId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The export. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                    "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                    "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                    "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                    "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                    "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ComplianceExport"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key.expired_api_key"];
            403: components["responses"]["403.endpoint_not_allowed.account_suspended"];
            404: components["responses"]["404.not_found"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    downloadExport: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The export.
                 * @example exp_1aB2cD3eF4gH5iJ6kL7mN8oP
                 */
                export_id: components["parameters"]["exportId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The archive. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                    "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                    "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                    "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                    "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                    "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                    "Content-Disposition": components["headers"]["Content-Disposition"];
                    "Repr-Digest": components["headers"]["Repr-Digest"];
                    [name: string]: unknown;
                };
                content: {
                    "application/zip": unknown;
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key.expired_api_key"];
            403: components["responses"]["403.endpoint_not_allowed.account_suspended"];
            404: components["responses"]["404.not_found"];
            409: components["responses"]["409.conflict"];
            410: components["responses"]["410.gone"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    listDeletions: {
        parameters: {
            query?: {
                /** @description How many items a page may have. */
                limit?: number;
                /** @description The id of the last item of the page before: `last_id`. */
                after?: string;
                /** @description By time of creation: `desc` is newest first. */
                order?: "asc" | "desc";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of deletions. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                    "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                    "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                    "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                    "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                    "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ComplianceDeletionList"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key.expired_api_key"];
            403: components["responses"]["403.endpoint_not_allowed.account_suspended"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    createDeletion: {
        parameters: {
            query?: never;
            header?: {
                /** @description Makes the call safe to repeat for 24 hours: the same body gets the answer of the first call, another body 422. Per tenant, mode and family of paths. */
                "Idempotency-Key"?: components["parameters"]["Idempotency-Key"];
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewComplianceDeletion"];
            };
        };
        responses: {
            /** @description The deletion; its state is at `Location`. */
            202: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                    "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                    "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                    "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                    "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                    "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    Location: components["headers"]["Location"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ComplianceDeletion"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key.expired_api_key"];
            403: components["responses"]["403.endpoint_not_allowed.account_suspended"];
            409: components["responses"]["409.conflict"];
            413: components["responses"]["413.payload_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            422: components["responses"]["422.idempotency_mismatch"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    getDeletion: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The deletion.
                 * @example del_1aB2cD3eF4gH5iJ6kL7mN8oP
                 */
                deletion_id: components["parameters"]["deletionId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The deletion, with how much was found in each store. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                    "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                    "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                    "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                    "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                    "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ComplianceDeletion"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key.expired_api_key"];
            403: components["responses"]["403.endpoint_not_allowed.account_suspended"];
            404: components["responses"]["404.not_found"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    listAuditLog: {
        parameters: {
            query?: {
                /** @description How many items a page may have. */
                limit?: number;
                /** @description The id of the last item of the page before: `last_id`. */
                after?: string;
                /** @description By time of creation: `desc` is newest first. */
                order?: "asc" | "desc";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of entries. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                    "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                    "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                    "X-RateLimit-Limit-Tokens": components["headers"]["X-RateLimit-Limit-Tokens"];
                    "X-RateLimit-Remaining-Tokens": components["headers"]["X-RateLimit-Remaining-Tokens"];
                    "X-RateLimit-Reset-Tokens": components["headers"]["X-RateLimit-Reset-Tokens"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AuditLogList"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key.expired_api_key"];
            403: components["responses"]["403.endpoint_not_allowed.account_suspended"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    getLiveness: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The process is running. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                    "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                    "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @constant */
                        status: "ok";
                        version: string;
                        commit: string;
                    };
                };
            };
        };
    };
    getReadiness: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The ingress takes requests. A store may be away. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                    "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                    "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @constant */
                        status: "ok";
                        /** @description What keeps the ingress from serving, by name; empty where nothing does. */
                        checks: {
                            [key: string]: string;
                        };
                    };
                };
            };
            /** @description The ingress is starting or stopping. */
            503: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                    "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                    "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @constant */
                        status: "unavailable";
                        /** @description What keeps the ingress from serving, by name; empty where nothing does. */
                        checks: {
                            [key: string]: string;
                        };
                    };
                };
            };
        };
    };
    getDocument: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The same as at `/platform/v1/openapi.json`. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "X-RateLimit-Limit-Requests": components["headers"]["X-RateLimit-Limit-Requests"];
                    "X-RateLimit-Remaining-Requests": components["headers"]["X-RateLimit-Remaining-Requests"];
                    "X-RateLimit-Reset-Requests": components["headers"]["X-RateLimit-Reset-Requests"];
                    ETag: components["headers"]["ETag"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        openapi: string;
                    } & {
                        [key: string]: unknown;
                    };
                };
            };
        };
    };
    "on:chat.completed": {
        parameters: {
            query?: never;
            header: {
                /** @description The event's id; the same id means that the event is sent again. */
                "webhook-id": string;
                /** @description Time of the signature, in Unix seconds. */
                "webhook-timestamp": string;
                /** @description One or more of `v1,<base64>`, separated by spaces: HMAC-SHA256 over id, timestamp and body. */
                "webhook-signature": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    id: string;
                    /** @constant */
                    type: "chat.completed";
                    /**
                     * Format: date-time
                     * @description Time of the event.
                     */
                    timestamp: string;
                    data: {
                        request_id: string;
                        key_id: string;
                        /** @enum {string} */
                        mode: "live" | "test";
                        /** @enum {string} */
                        model: "mobius" | "oloid" | "embedding" | "moderation";
                        /** @enum {string} */
                        endpoint: "chat" | "chat.stream" | "batch" | "embeddings" | "moderations";
                        entity_id: string | null;
                        /** @enum {string} */
                        finish_reason: "stop" | "length" | "tool_calls" | "content_filter" | "cancelled" | "error";
                        usage: components["schemas"]["Usage"];
                        /** @description What was charged. */
                        credits: number;
                    };
                };
            };
        };
        responses: {
            /** @description The webhook is disabled. */
            410: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Received, within 15 seconds. Any other answer is attempted again. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    "on:chat.failed": {
        parameters: {
            query?: never;
            header: {
                /** @description The event's id; the same id means that the event is sent again. */
                "webhook-id": string;
                /** @description Time of the signature, in Unix seconds. */
                "webhook-timestamp": string;
                /** @description One or more of `v1,<base64>`, separated by spaces: HMAC-SHA256 over id, timestamp and body. */
                "webhook-signature": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    id: string;
                    /** @constant */
                    type: "chat.failed";
                    /**
                     * Format: date-time
                     * @description Time of the event.
                     */
                    timestamp: string;
                    data: {
                        request_id: string;
                        key_id: string;
                        /** @enum {string} */
                        mode: "live" | "test";
                        /** @enum {string} */
                        model: "mobius" | "oloid" | "embedding" | "moderation";
                        /** @enum {string} */
                        endpoint: "chat" | "chat.stream" | "batch" | "embeddings" | "moderations";
                        entity_id: string | null;
                        /** @enum {string} */
                        finish_reason: "stop" | "length" | "tool_calls" | "content_filter" | "cancelled" | "error";
                        usage: components["schemas"]["Usage"];
                        error_code: string | null;
                    };
                };
            };
        };
        responses: {
            /** @description The webhook is disabled. */
            410: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Received, within 15 seconds. Any other answer is attempted again. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    "on:batch.completed": {
        parameters: {
            query?: never;
            header: {
                /** @description The event's id; the same id means that the event is sent again. */
                "webhook-id": string;
                /** @description Time of the signature, in Unix seconds. */
                "webhook-timestamp": string;
                /** @description One or more of `v1,<base64>`, separated by spaces: HMAC-SHA256 over id, timestamp and body. */
                "webhook-signature": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    id: string;
                    /** @constant */
                    type: "batch.completed";
                    /**
                     * Format: date-time
                     * @description Time of the event.
                     */
                    timestamp: string;
                    data: {
                        batch_id: string;
                        status: components["schemas"]["BatchStatus"];
                        total: number;
                        succeeded: number;
                        failed: number;
                    };
                };
            };
        };
        responses: {
            /** @description The webhook is disabled. */
            410: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Received, within 15 seconds. Any other answer is attempted again. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    "on:credits.purchased": {
        parameters: {
            query?: never;
            header: {
                /** @description The event's id; the same id means that the event is sent again. */
                "webhook-id": string;
                /** @description Time of the signature, in Unix seconds. */
                "webhook-timestamp": string;
                /** @description One or more of `v1,<base64>`, separated by spaces: HMAC-SHA256 over id, timestamp and body. */
                "webhook-signature": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    id: string;
                    /** @constant */
                    type: "credits.purchased";
                    /**
                     * Format: date-time
                     * @description Time of the event.
                     */
                    timestamp: string;
                    data: {
                        purchase_id: string;
                        credits: number;
                    };
                };
            };
        };
        responses: {
            /** @description The webhook is disabled. */
            410: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Received, within 15 seconds. Any other answer is attempted again. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    "on:credits.low": {
        parameters: {
            query?: never;
            header: {
                /** @description The event's id; the same id means that the event is sent again. */
                "webhook-id": string;
                /** @description Time of the signature, in Unix seconds. */
                "webhook-timestamp": string;
                /** @description One or more of `v1,<base64>`, separated by spaces: HMAC-SHA256 over id, timestamp and body. */
                "webhook-signature": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    id: string;
                    /** @constant */
                    type: "credits.low";
                    /**
                     * Format: date-time
                     * @description Time of the event.
                     */
                    timestamp: string;
                    data: {
                        balance: number;
                        balance_after_last_top_up: number;
                    };
                };
            };
        };
        responses: {
            /** @description The webhook is disabled. */
            410: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Received, within 15 seconds. Any other answer is attempted again. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    "on:credits.depleted": {
        parameters: {
            query?: never;
            header: {
                /** @description The event's id; the same id means that the event is sent again. */
                "webhook-id": string;
                /** @description Time of the signature, in Unix seconds. */
                "webhook-timestamp": string;
                /** @description One or more of `v1,<base64>`, separated by spaces: HMAC-SHA256 over id, timestamp and body. */
                "webhook-signature": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    id: string;
                    /** @constant */
                    type: "credits.depleted";
                    /**
                     * Format: date-time
                     * @description Time of the event.
                     */
                    timestamp: string;
                    data: {
                        balance: number;
                    };
                };
            };
        };
        responses: {
            /** @description The webhook is disabled. */
            410: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Received, within 15 seconds. Any other answer is attempted again. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    "on:budget.threshold_reached": {
        parameters: {
            query?: never;
            header: {
                /** @description The event's id; the same id means that the event is sent again. */
                "webhook-id": string;
                /** @description Time of the signature, in Unix seconds. */
                "webhook-timestamp": string;
                /** @description One or more of `v1,<base64>`, separated by spaces: HMAC-SHA256 over id, timestamp and body. */
                "webhook-signature": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    id: string;
                    /** @constant */
                    type: "budget.threshold_reached";
                    /**
                     * Format: date-time
                     * @description Time of the event.
                     */
                    timestamp: string;
                    data: {
                        /** @description `2026-11`, in UTC. */
                        month: string;
                        /** @description Tokens. */
                        limit: number;
                        /** @description Tokens. */
                        used: number;
                        threshold_percent: number;
                    };
                };
            };
        };
        responses: {
            /** @description The webhook is disabled. */
            410: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Received, within 15 seconds. Any other answer is attempted again. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    "on:budget.exceeded": {
        parameters: {
            query?: never;
            header: {
                /** @description The event's id; the same id means that the event is sent again. */
                "webhook-id": string;
                /** @description Time of the signature, in Unix seconds. */
                "webhook-timestamp": string;
                /** @description One or more of `v1,<base64>`, separated by spaces: HMAC-SHA256 over id, timestamp and body. */
                "webhook-signature": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    id: string;
                    /** @constant */
                    type: "budget.exceeded";
                    /**
                     * Format: date-time
                     * @description Time of the event.
                     */
                    timestamp: string;
                    data: {
                        /** @description `2026-11`, in UTC. */
                        month: string;
                        /** @description Tokens. */
                        limit: number;
                        /** @description Tokens. */
                        used: number;
                    };
                };
            };
        };
        responses: {
            /** @description The webhook is disabled. */
            410: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Received, within 15 seconds. Any other answer is attempted again. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    "on:key.created": {
        parameters: {
            query?: never;
            header: {
                /** @description The event's id; the same id means that the event is sent again. */
                "webhook-id": string;
                /** @description Time of the signature, in Unix seconds. */
                "webhook-timestamp": string;
                /** @description One or more of `v1,<base64>`, separated by spaces: HMAC-SHA256 over id, timestamp and body. */
                "webhook-signature": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    id: string;
                    /** @constant */
                    type: "key.created";
                    /**
                     * Format: date-time
                     * @description Time of the event.
                     */
                    timestamp: string;
                    data: {
                        key_id: string;
                        /** @enum {string} */
                        mode: "live" | "test";
                        scopes: string[];
                    };
                };
            };
        };
        responses: {
            /** @description The webhook is disabled. */
            410: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Received, within 15 seconds. Any other answer is attempted again. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    "on:key.revoked": {
        parameters: {
            query?: never;
            header: {
                /** @description The event's id; the same id means that the event is sent again. */
                "webhook-id": string;
                /** @description Time of the signature, in Unix seconds. */
                "webhook-timestamp": string;
                /** @description One or more of `v1,<base64>`, separated by spaces: HMAC-SHA256 over id, timestamp and body. */
                "webhook-signature": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    id: string;
                    /** @constant */
                    type: "key.revoked";
                    /**
                     * Format: date-time
                     * @description Time of the event.
                     */
                    timestamp: string;
                    data: {
                        key_id: string;
                    };
                };
            };
        };
        responses: {
            /** @description The webhook is disabled. */
            410: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Received, within 15 seconds. Any other answer is attempted again. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    "on:key.expiring": {
        parameters: {
            query?: never;
            header: {
                /** @description The event's id; the same id means that the event is sent again. */
                "webhook-id": string;
                /** @description Time of the signature, in Unix seconds. */
                "webhook-timestamp": string;
                /** @description One or more of `v1,<base64>`, separated by spaces: HMAC-SHA256 over id, timestamp and body. */
                "webhook-signature": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    id: string;
                    /** @constant */
                    type: "key.expiring";
                    /**
                     * Format: date-time
                     * @description Time of the event.
                     */
                    timestamp: string;
                    data: {
                        key_id: string;
                        name: string;
                        /** @description Time of expiry, in Unix seconds. */
                        expires_at: number;
                        /** @enum {unknown} */
                        days_left: 1 | 7;
                    };
                };
            };
        };
        responses: {
            /** @description The webhook is disabled. */
            410: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Received, within 15 seconds. Any other answer is attempted again. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    "on:moderation.flagged": {
        parameters: {
            query?: never;
            header: {
                /** @description The event's id; the same id means that the event is sent again. */
                "webhook-id": string;
                /** @description Time of the signature, in Unix seconds. */
                "webhook-timestamp": string;
                /** @description One or more of `v1,<base64>`, separated by spaces: HMAC-SHA256 over id, timestamp and body. */
                "webhook-signature": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    id: string;
                    /** @constant */
                    type: "moderation.flagged";
                    /**
                     * Format: date-time
                     * @description Time of the event.
                     */
                    timestamp: string;
                    data: {
                        request_id: string;
                        key_id: string;
                        /** @enum {string} */
                        mode: "live" | "test";
                        /** @enum {string} */
                        model: "mobius" | "oloid" | "embedding" | "moderation";
                        /** @enum {string} */
                        endpoint: "chat" | "chat.stream" | "batch" | "embeddings" | "moderations";
                        entity_id: string | null;
                        /** @enum {string} */
                        side: "input" | "output";
                        categories: string[];
                    };
                };
            };
        };
        responses: {
            /** @description The webhook is disabled. */
            410: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Received, within 15 seconds. Any other answer is attempted again. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    "on:entity.deleted": {
        parameters: {
            query?: never;
            header: {
                /** @description The event's id; the same id means that the event is sent again. */
                "webhook-id": string;
                /** @description Time of the signature, in Unix seconds. */
                "webhook-timestamp": string;
                /** @description One or more of `v1,<base64>`, separated by spaces: HMAC-SHA256 over id, timestamp and body. */
                "webhook-signature": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    id: string;
                    /** @constant */
                    type: "entity.deleted";
                    /**
                     * Format: date-time
                     * @description Time of the event.
                     */
                    timestamp: string;
                    data: {
                        entity_id: string;
                    };
                };
            };
        };
        responses: {
            /** @description The webhook is disabled. */
            410: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Received, within 15 seconds. Any other answer is attempted again. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    "on:compliance.export.completed": {
        parameters: {
            query?: never;
            header: {
                /** @description The event's id; the same id means that the event is sent again. */
                "webhook-id": string;
                /** @description Time of the signature, in Unix seconds. */
                "webhook-timestamp": string;
                /** @description One or more of `v1,<base64>`, separated by spaces: HMAC-SHA256 over id, timestamp and body. */
                "webhook-signature": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    id: string;
                    /** @constant */
                    type: "compliance.export.completed";
                    /**
                     * Format: date-time
                     * @description Time of the event.
                     */
                    timestamp: string;
                    data: {
                        id: string;
                        /** @enum {string} */
                        scope: "tenant" | "entity";
                        entity_id: string | null;
                    };
                };
            };
        };
        responses: {
            /** @description The webhook is disabled. */
            410: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Received, within 15 seconds. Any other answer is attempted again. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    "on:compliance.deletion.completed": {
        parameters: {
            query?: never;
            header: {
                /** @description The event's id; the same id means that the event is sent again. */
                "webhook-id": string;
                /** @description Time of the signature, in Unix seconds. */
                "webhook-timestamp": string;
                /** @description One or more of `v1,<base64>`, separated by spaces: HMAC-SHA256 over id, timestamp and body. */
                "webhook-signature": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    id: string;
                    /** @constant */
                    type: "compliance.deletion.completed";
                    /**
                     * Format: date-time
                     * @description Time of the event.
                     */
                    timestamp: string;
                    data: {
                        id: string;
                        /** @enum {string} */
                        scope: "tenant" | "entity";
                        entity_id: string | null;
                        /** @description Stands for the entity, whose id is deleted. */
                        entity_hash: string | null;
                    };
                };
            };
        };
        responses: {
            /** @description The webhook is disabled. */
            410: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Received, within 15 seconds. Any other answer is attempted again. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    "on:webhook.disabled": {
        parameters: {
            query?: never;
            header: {
                /** @description The event's id; the same id means that the event is sent again. */
                "webhook-id": string;
                /** @description Time of the signature, in Unix seconds. */
                "webhook-timestamp": string;
                /** @description One or more of `v1,<base64>`, separated by spaces: HMAC-SHA256 over id, timestamp and body. */
                "webhook-signature": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    id: string;
                    /** @constant */
                    type: "webhook.disabled";
                    /**
                     * Format: date-time
                     * @description Time of the event.
                     */
                    timestamp: string;
                    data: {
                        webhook_id: string;
                        url: string;
                        /** @enum {string} */
                        reason: "gone" | "failing";
                    };
                };
            };
        };
        responses: {
            /** @description The webhook is disabled. */
            410: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Received, within 15 seconds. Any other answer is attempted again. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    "on:ping": {
        parameters: {
            query?: never;
            header: {
                /** @description The event's id; the same id means that the event is sent again. */
                "webhook-id": string;
                /** @description Time of the signature, in Unix seconds. */
                "webhook-timestamp": string;
                /** @description One or more of `v1,<base64>`, separated by spaces: HMAC-SHA256 over id, timestamp and body. */
                "webhook-signature": string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": {
                    id: string;
                    /** @constant */
                    type: "ping";
                    /**
                     * Format: date-time
                     * @description Time of the event.
                     */
                    timestamp: string;
                    data: {
                        webhook_id: string;
                    };
                };
            };
        };
        responses: {
            /** @description The webhook is disabled. */
            410: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description Received, within 15 seconds. Any other answer is attempted again. */
            "2XX": {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
}
