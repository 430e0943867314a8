export interface paths {
    "/tenants": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List tenants */
        get: operations["listTenants"];
        put?: never;
        /** Create a tenant */
        post: operations["createTenant"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenants/{tenant_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Retrieve a tenant */
        get: operations["getTenant"];
        put?: never;
        post?: never;
        /**
         * Close a tenant
         * @description For good. Its keys are refused within a second, and everything of it is deleted but its ledger, usage, purchases and audit log. Export its data first. The deletion is at `Location`. Safe to repeat.
         */
        delete: operations["closeTenant"];
        options?: never;
        head?: never;
        /**
         * Update a tenant
         * @description A field that the body omits stays. A suspended tenant is refused everywhere within a second.
         */
        patch: operations["updateTenant"];
        trace?: never;
    };
    "/tenants/{tenant_id}/move": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Move a tenant to another shard
         * @description For a tenant that is idle: no request waits or runs, and all that ended is booked. Meanwhile, mostly for less than a second, its requests are 503 with `Retry-After`. Limits, answers and Idempotency-Keys go along. A call that was cut off may be repeated.
         */
        post: operations["moveTenant"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenants/{tenant_id}/exports": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List exports of a tenant */
        get: operations["listTenantExports"];
        put?: never;
        /**
         * Export a tenant's data
         * @description Of one entity, or of the whole tenant: of live data with a live key, of test data with a test key. At most 5 of each are in progress (409). Files are kept for seven days, of each kind the latest 5 of the whole tenant and the latest 1000 of entities.
         */
        post: operations["createTenantExport"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenants/{tenant_id}/exports/{export_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Retrieve an export of a tenant */
        get: operations["getTenantExport"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenants/{tenant_id}/exports/{export_id}/download": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Download an export of a tenant
         * @description A ZIP archive; 409 until it is complete, 410 after it has expired.
         */
        get: operations["downloadTenantExport"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenants/{tenant_id}/deletions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List deletions of a tenant */
        get: operations["listTenantDeletions"];
        put?: never;
        /**
         * Delete a tenant's data
         * @description Of one entity, or of all entities; keys and settings stay, as does the ledger, without the ids of entities. A live key deletes live and test data, a test key test data alone. A tenant has at most one deletion of all entities and 20 of single ones in progress (409), and as many of test keys. A deletion of the same entity that has not begun is answered again.
         */
        post: operations["createTenantDeletion"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenants/{tenant_id}/deletions/{deletion_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Retrieve a deletion of a tenant */
        get: operations["getTenantDeletion"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenants/{tenant_id}/keys": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List API keys of a tenant */
        get: operations["listTenantKeys"];
        put?: never;
        /** Create an API key of a tenant */
        post: operations["createTenantKey"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenants/{tenant_id}/keys/{key_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Retrieve an API key of a tenant */
        get: operations["getTenantKey"];
        put?: never;
        post?: never;
        /**
         * Revoke an API key of a tenant
         * @description The key stops working everywhere within a second. A revoked key stays in the list.
         */
        delete: operations["revokeTenantKey"];
        options?: never;
        head?: never;
        /**
         * Update an API key of a tenant
         * @description `null` removes a setting: no expiry, the tenant's limits. A key keeps its mode.
         */
        patch: operations["updateTenantKey"];
        trace?: never;
    };
    "/tenants/{tenant_id}/credits": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Grant or adjust credits
         * @description With an `Idempotency-Key` the call is safe to repeat: it books once, however late it is repeated.
         */
        post: operations["grantCredits"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/packages": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Retrieve the price list */
        get: operations["getPackages"];
        /**
         * Replace the price list
         * @description The whole list at once. A checkout keeps the price at which it was created.
         */
        put: operations["putPackages"];
        post?: never;
        delete?: never;
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
         * Retrieve usage of all tenants
         * @description By day since the beginning of the month, unless the parameters say otherwise.
         */
        get: operations["getAdminUsage"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/margin": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Retrieve cost, price and margin
         * @description What provider calls cost by the rates of their targets at the time, calls that failed before an answer included, and what the credits cost the tenants. Requests of targets without a cost have results of their own, whose `cost` is null.
         */
        get: operations["getMargin"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tenants/{tenant_id}/transactions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List a tenant's transactions */
        get: operations["listTenantTransactions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/providers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List providers */
        get: operations["listProviders"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/providers/{provider}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Retrieve a provider */
        get: operations["getProvider"];
        /**
         * Create or replace a provider
         * @description Without `api_key` a provider keeps its key; null removes it. Where `kind` or the origin of `base_url` changes, `api_key` must be given again, or as null. Plain http is for private hosts.
         */
        put: operations["putProvider"];
        post?: never;
        /**
         * Delete a provider
         * @description A provider that is a target of a tier is 409.
         */
        delete: operations["deleteProvider"];
        options?: never;
        head?: never;
        /**
         * Update a provider
         * @description What is not named stays, also within `breaker`. Where `kind` or the origin of `base_url` changes, `api_key` must be given again, or as null.
         */
        patch: operations["updateProvider"];
        trace?: never;
    };
    "/providers/{provider}/test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Test a provider
         * @description A worker sends the provider one short chat with the stored settings, past its breaker, and says what came of it within 30 seconds. Nothing is charged here.
         */
        post: operations["testProvider"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tiers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List tiers */
        get: operations["listTiers"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tiers/{tier}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Retrieve a tier */
        get: operations["getTier"];
        /**
         * Replace a tier
         * @description Creates a new version, which applies to new requests at once.
         */
        put: operations["putTier"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tiers/{tier}/versions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List versions of a tier */
        get: operations["listTierVersions"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/tiers/{tier}/rollback": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Roll back a tier
         * @description Creates a new version with the content of an earlier one.
         */
        post: operations["rollBackTier"];
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
        /** List published models */
        get: operations["listPublishedModels"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/models/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Retrieve a published model */
        get: operations["getPublishedModel"];
        /**
         * Publish a model
         * @description Callers of `POST /chat/completions` and `POST /embeddings` may then send the name as `model`, and `GET /models` lists it. Applies to new requests within a second.
         */
        put: operations["putPublishedModel"];
        post?: never;
        /**
         * Withdraw a published model
         * @description Requests that were accepted under the name are still answered.
         */
        delete: operations["deletePublishedModel"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/breakers": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List circuit breakers
         * @description One for each provider, shared by all workers.
         */
        get: operations["listBreakers"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/breakers/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List changes of circuit breakers */
        get: operations["listBreakerEvents"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/breakers/{provider}/reset": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Reset a circuit breaker
         * @description Closes the breaker and clears its failures. Needs no body.
         */
        post: operations["resetBreaker"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/queues": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List queues */
        get: operations["listQueues"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/queues/{queue}/pause": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Pause a queue
         * @description Requests are accepted and wait, until they are resumed or end with `timeout`. Needs no body.
         */
        post: operations["pauseQueue"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/queues/{queue}/resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Resume a paused queue
         * @description Needs no body.
         */
        post: operations["resumeQueue"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/processes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List processes
         * @description Those that have been heard of within ten seconds.
         */
        get: operations["listProcesses"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/requests/replay": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Replay failed requests
         * @description Runs asynchronous requests, requests under an `Idempotency-Key` and lines of running batches again that failed in an outage, without text and without a charge. Each keeps its id (a line its `custom_id`), which then answers with the new result, and is charged at most once. A failed request can be replayed for 24 hours after its acceptance, from some seconds after its failure on. The order of calls does not matter: what runs already, or has been replayed, is not found any more.
         */
        post: operations["replayRequests"];
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
         * List ended and refused requests
         * @description Requests are listed a second after their end and kept for `REQUEST_LOG_DAYS`; never their text. Of refused ones, the first few of each key, code and minute are listed; `GET /refusals` has the counts.
         */
        get: operations["listRequests"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/requests/{request_id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Retrieve an ended or refused request
         * @description By the `X-Request-Id` of its answer.
         */
        get: operations["getRequest"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/refusals": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List refusals by key and minute
         * @description Requests of known keys that were answered 400, 401, 402, 403 or 429 before they were accepted, counted by key, code and minute.
         */
        get: operations["listRefusals"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/settlement": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Retrieve the settlement backlog
         * @description Sums over all shards.
         */
        get: operations["getSettlement"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/settlement/requeue": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Requeue dead letters
         * @description Settlement tries them again. Safe to repeat; needs no body.
         */
        post: operations["requeueSettlement"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/audit_log": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List changes and sign-ins
         * @description A line is written before its change is made. It stays for 400 days.
         */
        get: operations["listAdminAuditLog"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/token": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Retrieve the calling token
         * @description Its name and role; never its value.
         */
        get: operations["getAdminToken"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/credentials": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Count stored secrets by key */
        get: operations["getCredentials"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/credentials/rotate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Encrypt stored secrets with the current key
         * @description While everything runs; safe to repeat.
         */
        post: operations["rotateCredentials"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        TenantList: {
            /** @constant */
            object: "list";
            data: components["schemas"]["Tenant"][];
            /** @description Whether there are items behind the last one. */
            has_more: boolean;
            /** @description Null where the page is empty. */
            first_id: string | null;
            /** @description `after` of the next page. */
            last_id: string | null;
        };
        Tenant: {
            id: string;
            /** @constant */
            object: "tenant";
            /** @description Time of creation, in Unix seconds. */
            created_at: number;
            /** @enum {string} */
            status: "active" | "suspended" | "closed";
            /** @description For people. It must not have half a surrogate pair. */
            name: string;
            /**
             * @description The tier of requests that name none.
             * @enum {string}
             */
            default_model: "mobius" | "oloid";
            /** @description Requests per minute of a key. */
            rpm: number;
            /** @description Tokens per minute of a key. */
            tpm: number;
            /** @description Requests of a key in any 24 hours; 0 means unlimited. */
            daily_requests: number;
            /** @description Complete chat requests per minute. */
            chat_rpm: number;
            /** @description Streamed chat requests per minute. */
            stream_rpm: number;
            /** @description Chat requests per minute of all keys together; null: no ceiling. */
            tenant_rpm: number | null;
            /** @description Tokens per minute of all keys together; null: no ceiling. */
            tenant_tpm: number | null;
            /** @description Chat requests of all keys together that have not ended; null: no ceiling. */
            max_in_flight: number | null;
            /** @description Share of the workers while requests wait, in proportion to the weights of the other tenants. */
            weight: number;
            /** @description Tokens a calendar month (UTC); null: no budget. */
            monthly_token_budget: number | null;
            /** @description Tokens a day of test keys. */
            test_daily_tokens: number;
            /** @description It must not have half a surrogate pair. */
            subject: string | null;
            /** @description It must not have half a surrogate pair. */
            grade: string | null;
            /**
             * @description What happens to a request whose caller disconnects.
             * @enum {string}
             */
            on_disconnect: "cancel" | "finish";
            /** @description How long answers stay after their end, in seconds; 0 keeps nothing of a conversation; null: the settings of the service. */
            retention_seconds: number | null;
            /** @description Categories that never flag, and the scores at which others do; null: the settings of the service. Thresholds are from 0 to 1; their categories are named in lower-case letters, digits, -, _ and /. */
            moderation: {
                disabled?: string[];
                thresholds?: {
                    [key: string]: number;
                };
            } | null;
            /** @description Credits; below zero where an answer cost more than was left. */
            balance: number;
            /** @description Credits held by requests in progress. */
            held: number;
            /** @description The balance less what is held. */
            available: number;
            /** @description The part of Redis that has what the tenant has in flight. */
            shard: number;
        };
        Error: {
            error: components["schemas"]["ErrorObject"];
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
        NewTenant: {
            /** @description For people. It must not have half a surrogate pair. */
            name: string;
            /**
             * @description The tier of requests that name none.
             * @enum {string}
             */
            default_model?: "mobius" | "oloid";
            /** @description Requests per minute of a key. */
            rpm?: number;
            /** @description Tokens per minute of a key. */
            tpm?: number;
            /** @description Requests of a key in any 24 hours; 0 means unlimited. */
            daily_requests?: number;
            /** @description Complete chat requests per minute. */
            chat_rpm?: number;
            /** @description Streamed chat requests per minute. */
            stream_rpm?: number;
            /** @description Chat requests per minute of all keys together; null: no ceiling. */
            tenant_rpm?: number | null;
            /** @description Tokens per minute of all keys together; null: no ceiling. */
            tenant_tpm?: number | null;
            /** @description Chat requests of all keys together that have not ended; null: no ceiling. */
            max_in_flight?: number | null;
            /** @description Share of the workers while requests wait, in proportion to the weights of the other tenants. */
            weight?: number;
            /** @description Tokens a calendar month (UTC); null: no budget. */
            monthly_token_budget?: number | null;
            /** @description Tokens a day of test keys. */
            test_daily_tokens?: number;
            /** @description It must not have half a surrogate pair. */
            subject?: string | null;
            /** @description It must not have half a surrogate pair. */
            grade?: string | null;
            /**
             * @description What happens to a request whose caller disconnects.
             * @enum {string}
             */
            on_disconnect?: "cancel" | "finish";
            /** @description How long answers stay after their end, in seconds; 0 keeps nothing of a conversation; null: the settings of the service. */
            retention_seconds?: number | null;
            /** @description Categories that never flag, and the scores at which others do; null: the settings of the service. Thresholds are from 0 to 1; their categories are named in lower-case letters, digits, -, _ and /. */
            moderation?: {
                disabled?: string[];
                thresholds?: {
                    [key: string]: number;
                };
            } | null;
            /** @description Granted at once. At most six decimals. */
            credits?: number;
        };
        TenantChanges: {
            /** @description For people. It must not have half a surrogate pair. */
            name?: string;
            /**
             * @description The tier of requests that name none.
             * @enum {string}
             */
            default_model?: "mobius" | "oloid";
            /** @description Requests per minute of a key. */
            rpm?: number;
            /** @description Tokens per minute of a key. */
            tpm?: number;
            /** @description Requests of a key in any 24 hours; 0 means unlimited. */
            daily_requests?: number;
            /** @description Complete chat requests per minute. */
            chat_rpm?: number;
            /** @description Streamed chat requests per minute. */
            stream_rpm?: number;
            /** @description Chat requests per minute of all keys together; null: no ceiling. */
            tenant_rpm?: number | null;
            /** @description Tokens per minute of all keys together; null: no ceiling. */
            tenant_tpm?: number | null;
            /** @description Chat requests of all keys together that have not ended; null: no ceiling. */
            max_in_flight?: number | null;
            /** @description Share of the workers while requests wait, in proportion to the weights of the other tenants. */
            weight?: number;
            /** @description Tokens a calendar month (UTC); null: no budget. */
            monthly_token_budget?: number | null;
            /** @description Tokens a day of test keys. */
            test_daily_tokens?: number;
            /** @description It must not have half a surrogate pair. */
            subject?: string | null;
            /** @description It must not have half a surrogate pair. */
            grade?: string | null;
            /**
             * @description What happens to a request whose caller disconnects.
             * @enum {string}
             */
            on_disconnect?: "cancel" | "finish";
            /** @description How long answers stay after their end, in seconds; 0 keeps nothing of a conversation; null: the settings of the service. */
            retention_seconds?: number | null;
            /** @description Categories that never flag, and the scores at which others do; null: the settings of the service. Thresholds are from 0 to 1; their categories are named in lower-case letters, digits, -, _ and /. */
            moderation?: {
                disabled?: string[];
                thresholds?: {
                    [key: string]: number;
                };
            } | null;
            /** @enum {string} */
            status?: "active" | "suspended";
        };
        TenantMove: {
            /** @description The number of the shard, as `GET /queues` lists them. */
            shard: number;
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
        NewComplianceExport: {
            /**
             * @description One entity, or all of the tenant.
             * @enum {string}
             */
            scope: "tenant" | "entity";
            /** @description With scope `entity`, and only then. It must not have half a surrogate pair. */
            entity_id?: string;
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
        NewCredits: {
            /** @description A grant, or with a negative amount an adjustment. At most six decimals, and not 0. */
            credits: number;
            /** @description Shown to the tenant. It must not have half a surrogate pair. */
            reason?: string;
        };
        CreditTransaction: {
            id: string;
            /** @constant */
            object: "transaction";
            /** @description Time of the booking, in Unix seconds. */
            created_at: number;
            /** @enum {string} */
            type: "grant" | "adjustment";
            credits: number;
            balance_after: number;
            reason: string;
        };
        PriceList: {
            /** @constant */
            object: "price_list";
            /** @description ISO 4217, lower case. */
            currency: string;
            /** @description Of free amounts, in minor units; null: only packages are sold. */
            price_per_million_credits: number | null;
            /** @description Packages that are no longer sold included. */
            packages: components["schemas"]["CreditPackage"][];
            /** @description Time of the latest change, in Unix seconds. */
            updated_at: number | null;
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
        NewPriceList: {
            /** @description ISO 4217, lower case. */
            currency: string;
            /** @description For free amounts; null: only packages are sold. */
            price_per_million_credits: number | null;
            packages: {
                id: string;
                name: string;
                /** @description At most six decimals. */
                credits: number;
                /** @description In the currency's minor unit; a multiple of 10 in bhd, jod, kwd, omr and tnd, of 100 in isk and ugx. */
                amount: number;
                /** @description Time from which it is no longer sold, in Unix seconds. */
                expires_at?: number | null;
            }[];
        };
        AdminUsagePage: {
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
                results: components["schemas"]["AdminUsageResult"][];
            }[];
            has_more: boolean;
            /** @description `page` of the next call. */
            next_page: string | null;
        };
        AdminUsageResult: {
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
            tenant_id: string | null;
            /** @description Null where the sums are not grouped by it. */
            key_id: string | null;
            /** @description Null where the sums are not grouped by it. */
            tier: string | null;
            /** @description Null where the sums are not grouped by it. */
            provider: string | null;
            /** @description Null where the sums are not grouped by it. */
            model: string | null;
            /** @description Null where the sums are not grouped by it. */
            mode: string | null;
            /** @description Null where the sums are not grouped by it. */
            endpoint: string | null;
        };
        MarginPage: {
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
                results: components["schemas"]["MarginResult"][];
            }[];
            has_more: boolean;
            /** @description `page` of the next call. */
            next_page: string | null;
        };
        MarginResult: {
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
            /** @description Of `cost`, ISO 4217, lower case; null where a target has no cost. */
            currency: string | null;
            /** @description What the provider calls of the requests cost; null: unknown. */
            cost: number | null;
            /** @description The credits at the price list of today; null: no price for free amounts. */
            price: number | null;
            /** @description Of `price`. */
            price_currency: string | null;
            /** @description `price` less `cost`; null where one is unknown or the currencies differ. */
            margin: number | null;
            /** @description Null where the sums are not grouped by it. */
            tenant_id: string | null;
            /** @description Null where the sums are not grouped by it. */
            key_id: string | null;
            /** @description Null where the sums are not grouped by it. */
            tier: string | null;
            /** @description Null where the sums are not grouped by it. */
            provider: string | null;
            /** @description Null where the sums are not grouped by it. */
            model: string | null;
            /** @description Null where the sums are not grouped by it. */
            mode: string | null;
            /** @description Null where the sums are not grouped by it. */
            endpoint: string | null;
        };
        AdminTransactionList: {
            /** @constant */
            object: "list";
            data: components["schemas"]["AdminTransaction"][];
            /** @description Whether there are items behind the last one. */
            has_more: boolean;
            /** @description Null where the page is empty. */
            first_id: string | null;
            /** @description `after` of the next page. */
            last_id: string | null;
        };
        AdminTransaction: {
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
            /** @description Of usage: the target that answered. */
            provider: string | null;
            /** @description The target's. */
            model: string | null;
            /** @description What the provider calls cost; null: unknown, or no usage. */
            cost: number | null;
            /** @description Of `cost`. */
            currency: string | null;
        };
        ProviderList: {
            /** @constant */
            object: "list";
            data: components["schemas"]["Provider"][];
            /** @description Whether there are items behind the last one. */
            has_more: boolean;
            /** @description Null where the page is empty. */
            first_id: string | null;
            /** @description `after` of the next page. */
            last_id: string | null;
        };
        Provider: {
            /** @description The same as `name`. */
            id: string;
            /** @constant */
            object: "provider";
            /** @description Time of creation, in Unix seconds. */
            created_at: number;
            name: string;
            /** @enum {string} */
            kind: "openai" | "anthropic" | "simulated";
            base_url: string;
            /** @description The key itself is never shown. */
            has_api_key: boolean;
            timeout_ms: number;
            /** @description Silence before the first text of a stream, for a prompt that takes no time to read. For each 3,000 tokens of the prompt it has as much again, up to four times in all. */
            first_token_timeout_ms: number;
            max_retries: number;
            breaker: {
                /** @description The failures of this time count. */
                window_ms: number;
                /** @description The breaker opens after at least this many calls. */
                min_attempts: number;
                /** @description The breaker opens at this share of failures. */
                failure_ratio: number;
                /** @description How long it stays open at first. */
                open_ms: number;
                /** @description How long it stays open at most. */
                max_open_ms: number;
            };
            /**
             * @description Null while Redis cannot be reached.
             * @enum {string|null}
             */
            breaker_state: "closed" | "open" | "half_open" | null;
            /** @description Calls at once, as it is set; null: found by model. */
            max_in_flight: number | null;
            /** @description What the provider has been sent at once lately; null while Redis cannot be reached. */
            capacity: {
                /** @description Null: all models together. */
                model: string | null;
                /**
                 * @description `none`: the ceiling of the provider as a whole is set.
                 * @enum {string}
                 */
                source: "set" | "found" | "none";
                /** @description Calls at once. */
                ceiling: number | null;
                /** @description Calls at the moment. */
                in_flight: number;
                /** @description Requests wait for a place. */
                waiting: boolean;
                /** @description The provider asked for a pause until then, in Unix seconds. */
                paused_until: number | null;
                /** @description The provider's limit, from its headers. */
                requests_per_minute: number | null;
                /** @description The provider's limit, from its headers. */
                tokens_per_minute: number | null;
            }[] | null;
            /** @description Time of the latest change, in Unix seconds. */
            updated_at: number;
        };
        ProviderSettings: {
            /** @enum {string} */
            kind: "openai" | "anthropic" | "simulated";
            /**
             * Format: uri
             * @description An http or https URL, up to the version and before the path of a call, without credentials, fragment or query but `api-version`.
             */
            base_url: string;
            api_key?: string | null;
            timeout_ms?: number;
            first_token_timeout_ms?: number;
            max_retries?: number;
            breaker?: {
                window_ms?: number;
                min_attempts?: number;
                failure_ratio?: number;
                open_ms?: number;
                max_open_ms?: number;
            };
            /** @description Calls at once, of all models together; what is above waits in the queue. Null or absent: a ceiling is found for each model. */
            max_in_flight?: number | null;
        };
        ProviderChanges: {
            /** @enum {string} */
            kind?: "openai" | "anthropic" | "simulated";
            /**
             * Format: uri
             * @description An http or https URL, up to the version and before the path of a call, without credentials, fragment or query but `api-version`.
             */
            base_url?: string;
            api_key?: string | null;
            timeout_ms?: number;
            first_token_timeout_ms?: number;
            max_retries?: number;
            breaker?: {
                window_ms?: number;
                min_attempts?: number;
                failure_ratio?: number;
                open_ms?: number;
                max_open_ms?: number;
            };
            /** @description Calls at once, of all models together; what is above waits in the queue. Null or absent: a ceiling is found for each model. */
            max_in_flight?: number | null;
        };
        DeletedProvider: {
            id: string;
            /** @constant */
            object: "provider";
            /** @constant */
            deleted: true;
        };
        ProviderTest: {
            /** @description By default that of the first target of the provider. No space at either end, and no invisible characters. */
            model?: string;
        };
        ProviderTestResult: {
            /** @description The provider's name. */
            id: string;
            /** @constant */
            object: "provider.test";
            /** @description It answered in full. */
            ok: boolean;
            /** @description Of its answer; null: it gave none. */
            status: number | null;
            /** @description From the call to its end. */
            ms: number;
            /** @description As the provider names it. */
            model: string | null;
            /** @description What to look at; never what the provider wrote. */
            message: string;
        };
        TierList: {
            /** @constant */
            object: "list";
            data: components["schemas"]["Tier"][];
            /** @description Whether there are items behind the last one. */
            has_more: boolean;
            /** @description Null where the page is empty. */
            first_id: string | null;
            /** @description `after` of the next page. */
            last_id: string | null;
        };
        Tier: {
            /** @enum {string} */
            id: "mobius" | "oloid" | "embedding";
            /** @constant */
            object: "tier";
            /** @description 0 until the tier is first set. */
            version: number;
            rates: {
                /** @description Credits a token. */
                prompt: number;
                /** @description Credits a token. */
                completion: number;
                /** @description Of tokens of this kind; as `prompt` where it is left out. */
                cached?: number;
                /** @description Of tokens of this kind; as `prompt` where it is left out. */
                cache_write?: number;
                /** @description Of tokens of this kind; as `prompt` where it is left out. */
                prompt_audio?: number;
                /** @description Of tokens of this kind; as `completion` where it is left out. */
                reasoning?: number;
                /** @description Of tokens of this kind; as `completion` where it is left out. */
                completion_audio?: number;
            };
            targets: {
                provider: string;
                model: string;
                /** @description The share among targets of one priority. */
                weight: number;
                /** @description A lower one is tried first. */
                priority: number;
                /** @description Tokens. */
                context_window: number;
                /** @description Calls at once, as it is set; null: the provider's, or found. */
                max_in_flight: number | null;
                cost: {
                    /** @description ISO 4217, lower case. */
                    currency: string;
                    /** @description Of a million tokens. */
                    prompt: number;
                    /** @description Of a million tokens. */
                    completion: number;
                    /** @description Of tokens of this kind; as `prompt` where it is left out. */
                    cached?: number;
                    /** @description Of tokens of this kind; as `prompt` where it is left out. */
                    cache_write?: number;
                    /** @description Of tokens of this kind; as `prompt` where it is left out. */
                    prompt_audio?: number;
                    /** @description Of tokens of this kind; as `completion` where it is left out. */
                    reasoning?: number;
                    /** @description Of tokens of this kind; as `completion` where it is left out. */
                    completion_audio?: number;
                } | null;
                /** @description What it can do beyond text, as it is set; null: what its provider's kind can. */
                capabilities: ("tools" | "custom_tools" | "json_schema" | "images" | "audio" | "files" | "logprobs" | "openai_fields")[] | null;
                /** @description The longest answer of the model, as it is set; null: 16384. */
                max_output_tokens: number | null;
            }[];
            /** @description Time of the latest change, in Unix seconds. */
            updated_at: number | null;
        };
        TierSettings: {
            /** @description Credits a token. */
            rates: {
                /** @description At most six decimals. */
                prompt: number;
                /** @description At most six decimals. */
                completion: number;
                /** @description Of tokens of this kind; as `prompt` where it is left out. At most six decimals. */
                cached?: number;
                /** @description Of tokens of this kind; as `prompt` where it is left out. At most six decimals. */
                cache_write?: number;
                /** @description Of tokens of this kind; as `prompt` where it is left out. At most six decimals. */
                prompt_audio?: number;
                /** @description Of tokens of this kind; as `completion` where it is left out. At most six decimals. */
                reasoning?: number;
                /** @description Of tokens of this kind; as `completion` where it is left out. At most six decimals. */
                completion_audio?: number;
            };
            targets: {
                provider: string;
                /** @description No space at either end, and no invisible characters. */
                model: string;
                /** @description The share among targets of one priority; 1 by default. */
                weight?: number;
                /** @description A lower one is tried first; 1 by default. */
                priority?: number;
                /** @description Tokens; 128000 by default. Of the tier `embedding` those of one input; 8192. */
                context_window?: number;
                /** @description Calls at once; what is above waits in the queue. Null or absent: the provider's, or found. */
                max_in_flight?: number | null;
                /** @description What the provider charges you, for `GET /margin`. Null or absent: unknown. */
                cost?: {
                    /** @description ISO 4217, lower case; the same for all targets of the tier. */
                    currency: string;
                    /** @description Of a million tokens. At most six decimals. */
                    prompt: number;
                    /** @description Of a million tokens. At most six decimals. */
                    completion: number;
                    /** @description Of tokens of this kind; as `prompt` where it is left out. At most six decimals. */
                    cached?: number;
                    /** @description Of tokens of this kind; as `prompt` where it is left out. At most six decimals. */
                    cache_write?: number;
                    /** @description Of tokens of this kind; as `prompt` where it is left out. At most six decimals. */
                    prompt_audio?: number;
                    /** @description Of tokens of this kind; as `completion` where it is left out. At most six decimals. */
                    reasoning?: number;
                    /** @description Of tokens of this kind; as `completion` where it is left out. At most six decimals. */
                    completion_audio?: number;
                } | null;
                /** @description What the target can do beyond text. Null or absent: what its provider's kind can. */
                capabilities?: ("tools" | "custom_tools" | "json_schema" | "images" | "audio" | "files" | "logprobs" | "openai_fields")[] | null;
                /** @description The longest answer of the model, in tokens. Null or absent: 16384. */
                max_output_tokens?: number | null;
            }[];
        };
        TierVersionList: {
            /** @constant */
            object: "list";
            data: components["schemas"]["TierVersion"][];
            /** @description Whether there are items behind the last one. */
            has_more: boolean;
            /** @description Null where the page is empty. */
            first_id: string | null;
            /** @description `after` of the next page. */
            last_id: string | null;
        };
        TierVersion: {
            id: string;
            /** @constant */
            object: "tier.version";
            /** @description Time of creation, in Unix seconds. */
            created_at: number;
            /** @enum {string} */
            tier: "mobius" | "oloid" | "embedding";
            version: number;
            rates: {
                /** @description Credits a token. */
                prompt: number;
                /** @description Credits a token. */
                completion: number;
                /** @description Of tokens of this kind; as `prompt` where it is left out. */
                cached?: number;
                /** @description Of tokens of this kind; as `prompt` where it is left out. */
                cache_write?: number;
                /** @description Of tokens of this kind; as `prompt` where it is left out. */
                prompt_audio?: number;
                /** @description Of tokens of this kind; as `completion` where it is left out. */
                reasoning?: number;
                /** @description Of tokens of this kind; as `completion` where it is left out. */
                completion_audio?: number;
            };
            targets: {
                provider: string;
                model: string;
                /** @description The share among targets of one priority. */
                weight: number;
                /** @description A lower one is tried first. */
                priority: number;
                /** @description Tokens. */
                context_window: number;
                /** @description Calls at once, as it is set; null: the provider's, or found. */
                max_in_flight: number | null;
                cost: {
                    /** @description ISO 4217, lower case. */
                    currency: string;
                    /** @description Of a million tokens. */
                    prompt: number;
                    /** @description Of a million tokens. */
                    completion: number;
                    /** @description Of tokens of this kind; as `prompt` where it is left out. */
                    cached?: number;
                    /** @description Of tokens of this kind; as `prompt` where it is left out. */
                    cache_write?: number;
                    /** @description Of tokens of this kind; as `prompt` where it is left out. */
                    prompt_audio?: number;
                    /** @description Of tokens of this kind; as `completion` where it is left out. */
                    reasoning?: number;
                    /** @description Of tokens of this kind; as `completion` where it is left out. */
                    completion_audio?: number;
                } | null;
                /** @description What it can do beyond text, as it is set; null: what its provider's kind can. */
                capabilities: ("tools" | "custom_tools" | "json_schema" | "images" | "audio" | "files" | "logprobs" | "openai_fields")[] | null;
                /** @description The longest answer of the model, as it is set; null: 16384. */
                max_output_tokens: number | null;
            }[];
        };
        TierRollback: {
            /** @description The version to return to. */
            version: number;
        };
        PublishedModelList: {
            /** @constant */
            object: "list";
            data: components["schemas"]["PublishedModel"][];
            /** @description Whether there are items behind the last one. */
            has_more: boolean;
            /** @description Null where the page is empty. */
            first_id: string | null;
            /** @description `after` of the next page. */
            last_id: string | null;
        };
        PublishedModel: {
            /** @description The name that callers send as `model`. */
            id: string;
            /** @constant */
            object: "published_model";
            /** @description Time of creation, in Unix seconds. */
            created_at: number;
            /** @enum {string} */
            tier: "mobius" | "oloid" | "embedding";
            target: {
                provider: string;
                model: string;
            } | null;
            /** @description Time of the latest change, in Unix seconds. */
            updated_at: number;
        };
        PublishedModelSettings: {
            /**
             * @description The tier that serves requests for this name, at its rates.
             * @enum {string}
             */
            tier: "mobius" | "oloid" | "embedding";
            /** @description The one target of the tier that serves them. Null or absent: all do. */
            target?: {
                provider: string;
                model: string;
            } | null;
        };
        DeletedPublishedModel: {
            id: string;
            /** @constant */
            object: "published_model";
            /** @constant */
            deleted: true;
        };
        BreakerList: {
            /** @constant */
            object: "list";
            data: components["schemas"]["Breaker"][];
            /** @description Whether there are items behind the last one. */
            has_more: boolean;
            /** @description Null where the page is empty. */
            first_id: string | null;
            /** @description `after` of the next page. */
            last_id: string | null;
        };
        Breaker: {
            /** @description The provider's name. */
            id: string;
            /** @constant */
            object: "breaker";
            provider: string;
            /** @enum {string} */
            state: "closed" | "open" | "half_open";
            /** @description Why it is in this state. */
            reason: string | null;
            /** @description Time of the latest change, in Unix seconds. */
            since: number | null;
            /** @description Time of the next probe, in Unix seconds. */
            retry_at: number | null;
            /** @description A probe is in progress. */
            probing: boolean;
            /** @description Of its window; of a breaker that is not closed, the failures alone. */
            recent_calls: number;
            recent_failures: number;
            /** @description How often each kind of failure. */
            recent_errors: {
                [key: string]: number;
            };
        };
        BreakerEventList: {
            /** @constant */
            object: "list";
            data: components["schemas"]["BreakerEvent"][];
            /** @description Whether there are items behind the last one. */
            has_more: boolean;
            /** @description Null where the page is empty. */
            first_id: string | null;
            /** @description `after` of the next page. */
            last_id: string | null;
        };
        BreakerEvent: {
            id: string;
            /** @constant */
            object: "breaker.event";
            /** @description Time of the change, in Unix seconds. */
            created_at: number;
            /** @enum {string} */
            type: "breaker.opened" | "breaker.half_opened" | "breaker.closed";
            /** Format: date-time */
            timestamp: string;
            data: {
                provider: string;
                /** @enum {string} */
                from: "closed" | "open" | "half_open";
                /** @enum {string} */
                to: "closed" | "open" | "half_open";
                reason: string | null;
                /** @description Time of the next probe, in Unix seconds. */
                retry_at: number | null;
                /** @description How often each kind of failure. */
                errors: {
                    [key: string]: number;
                };
            };
        };
        QueueList: {
            /** @constant */
            object: "list";
            data: components["schemas"]["Queue"][];
            /** @description Whether there are items behind the last one. */
            has_more: boolean;
            /** @description Null where the page is empty. */
            first_id: string | null;
            /** @description `after` of the next page. */
            last_id: string | null;
        };
        Queue: {
            /** @description Shard and name. */
            id: string;
            /** @constant */
            object: "queue";
            /** @enum {string} */
            queue: "interactive" | "batch";
            shard: number;
            waiting: number;
            /** @description The ten tenants with most requests in line; from a sample where more than 2,000 wait. */
            waiting_by_tenant: {
                tenant_id: string;
                waiting: number;
            }[];
            active: number;
            delayed: number;
            failed: number;
            /** @description The age of the oldest of the jobs that are next. */
            oldest_age_seconds: number;
            /** @description Jobs that leave the queue a second. */
            drain_rate_per_second: number;
            /** @description An operator has paused it: requests are accepted and wait. */
            paused: boolean;
        };
        ProcessList: {
            /** @constant */
            object: "list";
            data: components["schemas"]["Process"][];
            /** @description Whether there are items behind the last one. */
            has_more: boolean;
            /** @description Null where the page is empty. */
            first_id: string | null;
            /** @description `after` of the next page. */
            last_id: string | null;
        };
        Process: {
            /** @description Of this run of the process. */
            id: string;
            /** @constant */
            object: "process";
            /** @enum {string} */
            kind: "ingress" | "worker";
            version: string;
            /** @description `REVISION`, which the image sets. */
            commit: string;
            /** @description An ingress waits for workers that know at least its own. */
            protocol: number;
            host: string;
            pid: number;
            uptime_seconds: number;
            /** @description Requests that a worker runs, or answers that an ingress relays. */
            running: number;
            /** @description It was told to stop and takes nothing more. */
            draining: boolean;
        };
        NewRequestReplay: {
            /** @description Only what failed then or later, in Unix seconds. */
            start_time?: number;
            /** @description Only what failed before then, in Unix seconds. */
            end_time?: number;
            /** @description Only of this tenant. */
            tenant_id?: string;
            /**
             * @description Only what failed with this code.
             * @enum {string}
             */
            error_code?: "model_unavailable" | "timeout";
            /**
             * @description `keyed`: sent under an `Idempotency-Key`; `async`: with `Prefer: respond-async` and no key; `batch`: lines of batches that run.
             * @enum {string}
             */
            kind?: "async" | "keyed" | "batch";
            /** @description Only these requests. */
            request_ids?: string[];
            /** @description Says what would be replayed, and changes nothing. */
            dry_run?: boolean;
            /** @description Requests in one call, 100 by default. */
            limit?: number;
            /** @description `next_page` of the page before, with the same filter. */
            page?: string;
        };
        RequestReplay: {
            /** @constant */
            object: "request.replay";
            dry_run: boolean;
            /** @description Failed requests that the filter finds, on all pages. */
            matched: number;
            /** @description Requests of this page that run again. */
            replayed: number;
            /** @description Requests of this page that do not. */
            skipped: number;
            skipped_reasons: {
                /**
                 * @description `account_suspended`: The account is suspended. `budget_exceeded`: The monthly token budget is used up. `entity_deleted`: Its entity, or the entity’s history, has been deleted since. `idempotency_key_reused`: Its `Idempotency-Key` stands for a later request. `insufficient_credits`: The credits are used up or held. `key_expired`: Its API key has expired. `key_revoked`: Its API key is revoked or gone. `limit_reached`: A limit or the queue has no room now; replay it later. `not_replayable`: It is unknown, has not failed in an outage, has text, has been replayed, or its day is over. `nothing_is_kept`: The tenant keeps nothing of its conversations (`retention_seconds` is 0).
                 * @enum {string}
                 */
                reason: "account_suspended" | "budget_exceeded" | "entity_deleted" | "idempotency_key_reused" | "insufficient_credits" | "key_expired" | "key_revoked" | "limit_reached" | "not_replayable" | "nothing_is_kept";
                count: number;
            }[];
            /** @description When what was skipped for want of room may be replayed. */
            retry_after_seconds: number | null;
            /** @description This page, in the order of acceptance. */
            data: components["schemas"]["ReplayedRequest"][];
            has_more: boolean;
            /** @description `page` of the next call; null on the last page. */
            next_page: string | null;
        };
        ReplayedRequest: {
            id: string;
            tenant_id: string | null;
            /** @enum {string|null} */
            kind: "async" | "keyed" | "batch" | null;
            /** @enum {string|null} */
            error_code: "model_unavailable" | "timeout" | null;
            /** @description Time of acceptance, in Unix seconds. */
            created_at: number | null;
            /** @description Time of the failure, in Unix seconds. */
            failed_at: number | null;
            /**
             * @description `matched` in a dry run.
             * @enum {string}
             */
            outcome: "matched" | "replayed" | "skipped";
            /**
             * @description Why it was skipped.
             * @enum {string|null}
             */
            reason: "account_suspended" | "budget_exceeded" | "entity_deleted" | "idempotency_key_reused" | "insufficient_credits" | "key_expired" | "key_revoked" | "limit_reached" | "not_replayable" | "nothing_is_kept" | null;
        };
        AdminRequestList: {
            /** @constant */
            object: "list";
            data: components["schemas"]["AdminRequest"][];
            /** @description Whether there are items behind the last one. */
            has_more: boolean;
            /** @description Null where the page is empty. */
            first_id: string | null;
            /** @description `after` of the next page. */
            last_id: string | null;
        };
        AdminRequest: {
            id: string;
            /** @constant */
            object: "request";
            /** @description Time of acceptance or refusal, in Unix seconds. */
            created_at: number;
            tenant_id: string;
            key_id: string;
            /** @enum {string} */
            mode: "live" | "test";
            /** @description `chat`, `chat.stream` or `batch`; of a refused request its method and path. */
            endpoint: string;
            /** @enum {string} */
            status: "completed" | "failed" | "cancelled" | "refused";
            /** @enum {string|null} */
            error_code: "missing_api_key" | "invalid_api_key" | "expired_api_key" | "endpoint_not_allowed" | "account_suspended" | "insufficient_credits" | "budget_exceeded" | "rpm_exceeded" | "tpm_exceeded" | "invalid_request" | "message_too_long" | "too_many_messages" | "context_length_exceeded" | "content_policy_violation" | "model_unavailable" | "timeout" | "model_not_found" | "not_found" | "gone" | "method_not_allowed" | "payload_too_large" | "unsupported_media_type" | "conflict" | "idempotency_mismatch" | "internal_error" | null;
            /** @description For operators: provider, model, outcome and number of the last provider call that failed, or why it ended without a run. */
            reason: string | null;
            /** @enum {string|null} */
            tier: "mobius" | "oloid" | "embedding" | "moderation" | null;
            /** @description The provider that was called last. */
            provider: string | null;
            /** @description The provider's model. */
            model: string | null;
            finish_reason: string | null;
            prompt_tokens: number | null;
            completion_tokens: number | null;
            /** @description Tokens were counted here, not by the provider. */
            estimated: boolean | null;
            /** @description Charged. */
            credits: number | null;
            /** @description What the provider calls cost; null: unknown. */
            cost: number | null;
            /** @description Of `cost`. */
            currency: string | null;
            timeline: {
                /** @description Time of acceptance, in Unix seconds with decimals. */
                accepted_at: number | null;
                /** @description When a worker began, in Unix seconds with decimals. */
                started_at: number | null;
                /** @description When moderation had passed the messages, in Unix seconds with decimals. */
                moderated_at: number | null;
                /** @description Of moderation. */
                verdict: string | null;
                /** @description When the first text was released, in Unix seconds with decimals. */
                first_token_at: number | null;
                /** @description Time of the end, in Unix seconds with decimals. */
                finished_at: number | null;
                attempts: {
                    provider: string;
                    model: string;
                    /** @description Start of the call, in Unix seconds with decimals. */
                    started_at: number | null;
                    /** @description End of the call, in Unix seconds with decimals. */
                    ended_at: number | null;
                    /** @description `ok`, why it failed, or `breaker_open`: it was not made. */
                    outcome: string;
                }[];
            };
        };
        RefusalList: {
            /** @constant */
            object: "list";
            data: components["schemas"]["Refusal"][];
            /** @description Whether there are items behind the last one. */
            has_more: boolean;
            /** @description Null where the page is empty. */
            first_id: string | null;
            /** @description `after` of the next page. */
            last_id: string | null;
        };
        Refusal: {
            id: string;
            /** @constant */
            object: "refusal.count";
            /** @description The beginning of the minute, in Unix seconds. */
            created_at: number;
            tenant_id: string;
            key_id: string;
            /** @enum {string} */
            mode: "live" | "test";
            /** @enum {string} */
            error_code: "missing_api_key" | "invalid_api_key" | "expired_api_key" | "endpoint_not_allowed" | "account_suspended" | "insufficient_credits" | "budget_exceeded" | "rpm_exceeded" | "tpm_exceeded" | "invalid_request" | "message_too_long" | "too_many_messages" | "context_length_exceeded" | "content_policy_violation" | "model_unavailable" | "timeout" | "model_not_found" | "not_found" | "gone" | "method_not_allowed" | "payload_too_large" | "unsupported_media_type" | "conflict" | "idempotency_mismatch" | "internal_error";
            /** @description Refused requests in this minute. */
            count: number;
        };
        Settlement: {
            /** @constant */
            object: "settlement";
            /** @description Finished requests that are not booked yet. */
            outbox: number;
            /** @description Records that could not be booked and wait for another try. */
            dead_letters: number;
            /** @description Age of the oldest record that is not booked. */
            lag_seconds: number;
            /** @description What the last reconciliation could not repair; `null` before the first one. */
            drift: number | null;
        };
        SettlementRequeue: {
            /** @constant */
            object: "settlement.requeue";
            /** @description Dead letters that are back in the outbox. */
            requeued: number;
            /** @description Dead letters that cannot be read and stay. */
            dead_letters: number;
        };
        AdminAuditLogList: {
            /** @constant */
            object: "list";
            data: components["schemas"]["AdminAuditLogEntry"][];
            /** @description Whether there are items behind the last one. */
            has_more: boolean;
            /** @description Null where the page is empty. */
            first_id: string | null;
            /** @description `after` of the next page. */
            last_id: string | null;
        };
        AdminAuditLogEntry: {
            id: string;
            /** @constant */
            object: "admin_audit_log.entry";
            /** @description Time of the call, in Unix seconds. */
            created_at: number;
            /** @description The name of the token; null where none was right. */
            actor: string | null;
            /** @enum {string|null} */
            role: "read" | "write" | null;
            /**
             * @description `refused_tokens`: the address has sent so many wrong tokens that it is kept out for up to a minute.
             * @enum {string}
             */
            action: "change" | "sign_in" | "sign_out" | "refused_tokens";
            method: string;
            path: string;
            /** @description The id of what was changed. */
            target: string | null;
            /** @description The body of the call, without its secrets. */
            changes: Record<string, never> | null;
            /** @description Of the answer; null where nobody knows how the call ended. */
            status: number | null;
            request_id: string;
            /** @description Where the call came from. */
            address: string;
        };
        AdminToken: {
            /** @constant */
            object: "admin_token";
            /** @description As the audit log names it. */
            name: string;
            /** @enum {string} */
            role: "read" | "write";
        };
        Credentials: {
            /** @constant */
            object: "credentials";
            keys: {
                /** @description A part of its hash; what it encrypts begins with `v1:` and this. */
                id: string;
                /** @description It encrypts: `CREDENTIALS_KEY`. The others only decrypt: `CREDENTIALS_KEYS`. */
                current: boolean;
                /** @description Providers, webhooks and secrets of the service that it has encrypted. */
                rows: number;
            }[];
            /** @description Rows of earlier versions, which name no key, or of keys that the service does not have. */
            others: number;
        };
        CredentialRotation: {
            /** @constant */
            object: "credentials.rotation";
            /** @description Rows that are encrypted with the current key from now on. */
            rotated: number;
            /** @description Rows that are not, because they changed meanwhile or cannot be decrypted; call again. */
            remaining: number;
            /** @description The ids of rows that no key of the service decrypts. */
            unreadable: string[];
        };
    };
    responses: {
        /** @description `invalid_request`: The request is malformed, or a field is missing or invalid; `param` names the field. */
        "400.invalid_request": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /**
         * @description `missing_api_key`: No API key was sent.
         *
         *     `invalid_api_key`: The API key is unknown, malformed or revoked.
         */
        "401.missing_api_key.invalid_api_key": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                "WWW-Authenticate": components["headers"]["WWW-Authenticate"];
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
                "Retry-After": components["headers"]["Retry-After"];
                "X-Should-Retry": components["headers"]["X-Should-Retry"];
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
        /** @description `endpoint_not_allowed`: The key's scopes do not cover this endpoint, or the call would grant more than the key has. */
        "403.endpoint_not_allowed": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
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
                [name: string]: unknown;
            };
            content: {
                "application/json": components["schemas"]["Error"];
            };
        };
    };
    parameters: {
        /**
         * @description The tenant.
         * @example ten_5kJ8hG2fD4sA6pO9iU3yT7rE
         */
        tenantId: string;
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
        /**
         * @description The API key.
         * @example key_9dJ3nR5wT7yU1pL8sA2fG4hK
         */
        keyId: string;
        /** @description Makes the call safe to repeat for 24 hours: the same body gets the answer of the first call, another body 422. Per tenant, mode and family of paths. */
        "Idempotency-Key": string;
        /**
         * @description The provider's name.
         * @example openai
         */
        provider: string;
        /**
         * @description The model tier.
         * @example mobius
         */
        tier: "mobius" | "oloid" | "embedding";
        /**
         * @description The name that callers send as `model`, percent-encoded.
         * @example gpt-4o-mini
         */
        name: string;
        /**
         * @description Shard and name of the queue, as its `id` in the list.
         * @example 0:interactive
         */
        queue: string;
        /**
         * @description The request.
         * @example req_4fK2mZ8sQ1xY7bN3vC6tR9wE
         */
        requestId: string;
    };
    requestBodies: never;
    headers: {
        /** @description The id of the request; the same as `error.request_id`. */
        "X-Request-Id": string;
        /** @description What the endpoint asks for (RFC 9110): a Bearer credential in `Authorization`. */
        "WWW-Authenticate": "Bearer";
        /** @description Seconds after which the same call is admitted if nothing else changes. */
        "Retry-After": number;
        /** @description Do not send the same again without being asked: it was cancelled, its key stands for a stream that broke off, or it passes in more than two minutes only. */
        "X-Should-Retry": "false";
        /** @description Where the accepted resource can be retrieved. */
        Location: string;
        /** @description The name of the file. */
        "Content-Disposition": string;
        /** @description The SHA-256 of the file (RFC 9530). */
        "Repr-Digest": string;
        /** @description The answer of an earlier call with the same `Idempotency-Key`, or of an earlier try of this call. */
        "Idempotent-Replayed": "true";
    };
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    listTenants: {
        parameters: {
            query?: {
                /** @description Only with this text in their names. */
                name?: string;
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
            /** @description A page of tenants. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TenantList"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    createTenant: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewTenant"];
            };
        };
        responses: {
            /** @description The tenant. */
            201: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Tenant"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key"];
            403: components["responses"]["403.endpoint_not_allowed"];
            413: components["responses"]["413.payload_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    getTenant: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The tenant.
                 * @example ten_5kJ8hG2fD4sA6pO9iU3yT7rE
                 */
                tenant_id: components["parameters"]["tenantId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The tenant. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Tenant"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key"];
            404: components["responses"]["404.not_found"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    closeTenant: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The tenant.
                 * @example ten_5kJ8hG2fD4sA6pO9iU3yT7rE
                 */
                tenant_id: components["parameters"]["tenantId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The closed tenant. */
            202: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    Location: components["headers"]["Location"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Tenant"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key"];
            403: components["responses"]["403.endpoint_not_allowed"];
            404: components["responses"]["404.not_found"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    updateTenant: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The tenant.
                 * @example ten_5kJ8hG2fD4sA6pO9iU3yT7rE
                 */
                tenant_id: components["parameters"]["tenantId"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["TenantChanges"];
            };
        };
        responses: {
            /** @description The updated tenant. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Tenant"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key"];
            403: components["responses"]["403.endpoint_not_allowed"];
            404: components["responses"]["404.not_found"];
            409: components["responses"]["409.conflict"];
            413: components["responses"]["413.payload_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    moveTenant: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The tenant.
                 * @example ten_5kJ8hG2fD4sA6pO9iU3yT7rE
                 */
                tenant_id: components["parameters"]["tenantId"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["TenantMove"];
            };
        };
        responses: {
            /** @description The tenant on its shard. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Tenant"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key"];
            403: components["responses"]["403.endpoint_not_allowed"];
            404: components["responses"]["404.not_found"];
            409: components["responses"]["409.conflict"];
            413: components["responses"]["413.payload_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    listTenantExports: {
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
                 * @description The tenant.
                 * @example ten_5kJ8hG2fD4sA6pO9iU3yT7rE
                 */
                tenant_id: components["parameters"]["tenantId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of exports. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ComplianceExportList"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key"];
            404: components["responses"]["404.not_found"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    createTenantExport: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The tenant.
                 * @example ten_5kJ8hG2fD4sA6pO9iU3yT7rE
                 */
                tenant_id: components["parameters"]["tenantId"];
            };
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
                    Location: components["headers"]["Location"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ComplianceExport"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key"];
            403: components["responses"]["403.endpoint_not_allowed"];
            404: components["responses"]["404.not_found"];
            413: components["responses"]["413.payload_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    getTenantExport: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The tenant.
                 * @example ten_5kJ8hG2fD4sA6pO9iU3yT7rE
                 */
                tenant_id: components["parameters"]["tenantId"];
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
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ComplianceExport"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key"];
            404: components["responses"]["404.not_found"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    downloadTenantExport: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The tenant.
                 * @example ten_5kJ8hG2fD4sA6pO9iU3yT7rE
                 */
                tenant_id: components["parameters"]["tenantId"];
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
                    "Content-Disposition": components["headers"]["Content-Disposition"];
                    "Repr-Digest": components["headers"]["Repr-Digest"];
                    [name: string]: unknown;
                };
                content: {
                    "application/zip": unknown;
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key"];
            404: components["responses"]["404.not_found"];
            409: components["responses"]["409.conflict"];
            410: components["responses"]["410.gone"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    listTenantDeletions: {
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
                 * @description The tenant.
                 * @example ten_5kJ8hG2fD4sA6pO9iU3yT7rE
                 */
                tenant_id: components["parameters"]["tenantId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of deletions. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ComplianceDeletionList"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key"];
            404: components["responses"]["404.not_found"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    createTenantDeletion: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The tenant.
                 * @example ten_5kJ8hG2fD4sA6pO9iU3yT7rE
                 */
                tenant_id: components["parameters"]["tenantId"];
            };
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
                    Location: components["headers"]["Location"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ComplianceDeletion"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key"];
            403: components["responses"]["403.endpoint_not_allowed"];
            404: components["responses"]["404.not_found"];
            413: components["responses"]["413.payload_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    getTenantDeletion: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The tenant.
                 * @example ten_5kJ8hG2fD4sA6pO9iU3yT7rE
                 */
                tenant_id: components["parameters"]["tenantId"];
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
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ComplianceDeletion"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key"];
            404: components["responses"]["404.not_found"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    listTenantKeys: {
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
                 * @description The tenant.
                 * @example ten_5kJ8hG2fD4sA6pO9iU3yT7rE
                 */
                tenant_id: components["parameters"]["tenantId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of keys. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiKeyList"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key"];
            404: components["responses"]["404.not_found"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    createTenantKey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The tenant.
                 * @example ten_5kJ8hG2fD4sA6pO9iU3yT7rE
                 */
                tenant_id: components["parameters"]["tenantId"];
            };
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
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiKeyWithValue"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key"];
            403: components["responses"]["403.endpoint_not_allowed"];
            404: components["responses"]["404.not_found"];
            409: components["responses"]["409.conflict"];
            413: components["responses"]["413.payload_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    getTenantKey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The tenant.
                 * @example ten_5kJ8hG2fD4sA6pO9iU3yT7rE
                 */
                tenant_id: components["parameters"]["tenantId"];
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
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiKey"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key"];
            404: components["responses"]["404.not_found"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    revokeTenantKey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The tenant.
                 * @example ten_5kJ8hG2fD4sA6pO9iU3yT7rE
                 */
                tenant_id: components["parameters"]["tenantId"];
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
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeletedApiKey"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key"];
            403: components["responses"]["403.endpoint_not_allowed"];
            404: components["responses"]["404.not_found"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    updateTenantKey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The tenant.
                 * @example ten_5kJ8hG2fD4sA6pO9iU3yT7rE
                 */
                tenant_id: components["parameters"]["tenantId"];
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
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ApiKey"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key"];
            403: components["responses"]["403.endpoint_not_allowed"];
            404: components["responses"]["404.not_found"];
            409: components["responses"]["409.conflict"];
            413: components["responses"]["413.payload_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    grantCredits: {
        parameters: {
            query?: never;
            header?: {
                /** @description Makes the call safe to repeat for 24 hours: the same body gets the answer of the first call, another body 422. Per tenant, mode and family of paths. */
                "Idempotency-Key"?: components["parameters"]["Idempotency-Key"];
            };
            path: {
                /**
                 * @description The tenant.
                 * @example ten_5kJ8hG2fD4sA6pO9iU3yT7rE
                 */
                tenant_id: components["parameters"]["tenantId"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewCredits"];
            };
        };
        responses: {
            /** @description The transaction. */
            201: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CreditTransaction"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key"];
            403: components["responses"]["403.endpoint_not_allowed"];
            404: components["responses"]["404.not_found"];
            413: components["responses"]["413.payload_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            422: components["responses"]["422.idempotency_mismatch"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    getPackages: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The price list. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PriceList"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    putPackages: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewPriceList"];
            };
        };
        responses: {
            /** @description The price list. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PriceList"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key"];
            403: components["responses"]["403.endpoint_not_allowed"];
            413: components["responses"]["413.payload_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    getAdminUsage: {
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
                group_by?: ("tenant_id" | "key_id" | "tier" | "provider" | "model" | "mode" | "endpoint")[];
                /** @description Only of these tenants. */
                tenant_id?: string[];
                /** @description Only of these keys; may be repeated, like every filter. */
                key_id?: string[];
                /** @description Only of these tiers. */
                tier?: ("mobius" | "oloid" | "embedding")[];
                /** @description Only answered by these providers. */
                provider?: string[];
                /** @description Only answered by these models, by the provider's name. */
                model?: string[];
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
            /** @description A page of buckets. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AdminUsagePage"];
                    "text/csv": string;
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    getMargin: {
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
                group_by?: ("tenant_id" | "key_id" | "tier" | "provider" | "model" | "mode" | "endpoint")[];
                /** @description Only of these tenants. */
                tenant_id?: string[];
                /** @description Only of these keys; may be repeated, like every filter. */
                key_id?: string[];
                /** @description Only of these tiers. */
                tier?: ("mobius" | "oloid" | "embedding")[];
                /** @description Only answered by these providers. */
                provider?: string[];
                /** @description Only answered by these models, by the provider's name. */
                model?: string[];
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
            /** @description A page of buckets. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["MarginPage"];
                    "text/csv": string;
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    listTenantTransactions: {
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
            path: {
                /**
                 * @description The tenant.
                 * @example ten_5kJ8hG2fD4sA6pO9iU3yT7rE
                 */
                tenant_id: components["parameters"]["tenantId"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of the ledger. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AdminTransactionList"];
                    "text/csv": string;
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key"];
            404: components["responses"]["404.not_found"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    listProviders: {
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
            /** @description A page of providers. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ProviderList"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    getProvider: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The provider's name.
                 * @example openai
                 */
                provider: components["parameters"]["provider"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The provider. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Provider"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key"];
            404: components["responses"]["404.not_found"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    putProvider: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The provider's name.
                 * @example openai
                 */
                provider: components["parameters"]["provider"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ProviderSettings"];
            };
        };
        responses: {
            /** @description The replaced provider. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Provider"];
                };
            };
            /** @description The created provider. */
            201: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Provider"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key"];
            403: components["responses"]["403.endpoint_not_allowed"];
            404: components["responses"]["404.not_found"];
            413: components["responses"]["413.payload_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    deleteProvider: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The provider's name.
                 * @example openai
                 */
                provider: components["parameters"]["provider"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The provider is deleted. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeletedProvider"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key"];
            403: components["responses"]["403.endpoint_not_allowed"];
            404: components["responses"]["404.not_found"];
            409: components["responses"]["409.conflict"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    updateProvider: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The provider's name.
                 * @example openai
                 */
                provider: components["parameters"]["provider"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["ProviderChanges"];
            };
        };
        responses: {
            /** @description The updated provider. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Provider"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key"];
            403: components["responses"]["403.endpoint_not_allowed"];
            404: components["responses"]["404.not_found"];
            413: components["responses"]["413.payload_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    testProvider: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The provider's name.
                 * @example openai
                 */
                provider: components["parameters"]["provider"];
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                "application/json": components["schemas"]["ProviderTest"];
            };
        };
        responses: {
            /** @description The result, also of a call that failed. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ProviderTestResult"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key"];
            403: components["responses"]["403.endpoint_not_allowed"];
            404: components["responses"]["404.not_found"];
            413: components["responses"]["413.payload_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    listTiers: {
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
            /** @description A page of tiers. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TierList"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    getTier: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The model tier.
                 * @example mobius
                 */
                tier: components["parameters"]["tier"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The tier. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Tier"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key"];
            404: components["responses"]["404.not_found"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    putTier: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The model tier.
                 * @example mobius
                 */
                tier: components["parameters"]["tier"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["TierSettings"];
            };
        };
        responses: {
            /** @description The tier. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Tier"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key"];
            403: components["responses"]["403.endpoint_not_allowed"];
            404: components["responses"]["404.not_found"];
            413: components["responses"]["413.payload_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    listTierVersions: {
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
                 * @description The model tier.
                 * @example mobius
                 */
                tier: components["parameters"]["tier"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A page of versions. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["TierVersionList"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key"];
            404: components["responses"]["404.not_found"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    rollBackTier: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The model tier.
                 * @example mobius
                 */
                tier: components["parameters"]["tier"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["TierRollback"];
            };
        };
        responses: {
            /** @description The tier. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Tier"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key"];
            403: components["responses"]["403.endpoint_not_allowed"];
            404: components["responses"]["404.not_found"];
            409: components["responses"]["409.conflict"];
            413: components["responses"]["413.payload_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    listPublishedModels: {
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
            /** @description A page of published models. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PublishedModelList"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    getPublishedModel: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The name that callers send as `model`, percent-encoded.
                 * @example gpt-4o-mini
                 */
                name: components["parameters"]["name"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The published model. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PublishedModel"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key"];
            404: components["responses"]["404.not_found"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    putPublishedModel: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The name that callers send as `model`, percent-encoded.
                 * @example gpt-4o-mini
                 */
                name: components["parameters"]["name"];
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["PublishedModelSettings"];
            };
        };
        responses: {
            /** @description The changed model. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PublishedModel"];
                };
            };
            /** @description The published model. */
            201: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["PublishedModel"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key"];
            403: components["responses"]["403.endpoint_not_allowed"];
            404: components["responses"]["404.not_found"];
            413: components["responses"]["413.payload_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    deletePublishedModel: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The name that callers send as `model`, percent-encoded.
                 * @example gpt-4o-mini
                 */
                name: components["parameters"]["name"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The model is withdrawn. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeletedPublishedModel"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key"];
            403: components["responses"]["403.endpoint_not_allowed"];
            404: components["responses"]["404.not_found"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    listBreakers: {
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
            /** @description A page of circuit breakers. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BreakerList"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    listBreakerEvents: {
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
            /** @description A page of changes. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BreakerEventList"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    resetBreaker: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description The provider's name.
                 * @example openai
                 */
                provider: components["parameters"]["provider"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The circuit breaker. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Breaker"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key"];
            403: components["responses"]["403.endpoint_not_allowed"];
            404: components["responses"]["404.not_found"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    listQueues: {
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
            /** @description A page of queues. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["QueueList"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    pauseQueue: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description Shard and name of the queue, as its `id` in the list.
                 * @example 0:interactive
                 */
                queue: components["parameters"]["queue"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The queue. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Queue"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key"];
            403: components["responses"]["403.endpoint_not_allowed"];
            404: components["responses"]["404.not_found"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    resumeQueue: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /**
                 * @description Shard and name of the queue, as its `id` in the list.
                 * @example 0:interactive
                 */
                queue: components["parameters"]["queue"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The queue. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Queue"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key"];
            403: components["responses"]["403.endpoint_not_allowed"];
            404: components["responses"]["404.not_found"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    listProcesses: {
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
            /** @description A page of processes. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ProcessList"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    replayRequests: {
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
                "application/json": components["schemas"]["NewRequestReplay"];
            };
        };
        responses: {
            /** @description What became of the requests. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    "Idempotent-Replayed": components["headers"]["Idempotent-Replayed"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RequestReplay"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key"];
            403: components["responses"]["403.endpoint_not_allowed"];
            409: components["responses"]["409.conflict"];
            413: components["responses"]["413.payload_too_large"];
            415: components["responses"]["415.unsupported_media_type"];
            422: components["responses"]["422.idempotency_mismatch"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    listRequests: {
        parameters: {
            query?: {
                /** @description Only of this tenant. */
                tenant_id?: string;
                /** @description Only of this key. */
                key_id?: string;
                /** @description Only with this code. */
                error_code?: "missing_api_key" | "invalid_api_key" | "expired_api_key" | "endpoint_not_allowed" | "account_suspended" | "insufficient_credits" | "budget_exceeded" | "rpm_exceeded" | "tpm_exceeded" | "invalid_request" | "message_too_long" | "too_many_messages" | "context_length_exceeded" | "content_policy_violation" | "model_unavailable" | "timeout" | "model_not_found" | "not_found" | "gone" | "method_not_allowed" | "payload_too_large" | "unsupported_media_type" | "conflict" | "idempotency_mismatch" | "internal_error";
                /** @description Only then or later, in Unix seconds. */
                start_time?: string;
                /** @description Only before then, in Unix seconds. */
                end_time?: string;
                /** @description Only with this status. */
                status?: "completed" | "failed" | "cancelled" | "refused";
                /** @description Only of this tier. */
                tier?: "mobius" | "oloid" | "embedding" | "moderation";
                /** @description Only those whose last call was of this provider. */
                provider?: string;
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
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AdminRequestList"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    getRequest: {
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
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AdminRequest"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key"];
            404: components["responses"]["404.not_found"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    listRefusals: {
        parameters: {
            query?: {
                /** @description Only of this tenant. */
                tenant_id?: string;
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
            /** @description A page of counts. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RefusalList"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    getSettlement: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The backlog. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Settlement"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    requeueSettlement: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What was requeued. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["SettlementRequeue"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key"];
            403: components["responses"]["403.endpoint_not_allowed"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    listAdminAuditLog: {
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
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AdminAuditLogList"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    getAdminToken: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The token that the call was made with. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["AdminToken"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    getCredentials: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description How many rows each key has encrypted. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Credentials"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
    rotateCredentials: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What was encrypted again. */
            200: {
                headers: {
                    "X-Request-Id": components["headers"]["X-Request-Id"];
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CredentialRotation"];
                };
            };
            400: components["responses"]["400.invalid_request"];
            401: components["responses"]["401.missing_api_key.invalid_api_key"];
            403: components["responses"]["403.endpoint_not_allowed"];
            429: components["responses"]["429.rpm_exceeded"];
            500: components["responses"]["500.internal_error"];
            503: components["responses"]["503.model_unavailable"];
        };
    };
}
