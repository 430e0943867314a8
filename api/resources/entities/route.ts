import type { Request, Response, Router } from 'express';

import { pageOf, parseListQuery, toListPage } from '../../../shared/contracts/list-page.ts';
import { ServiceError } from '../../../shared/errors/service-error.ts';
import type { Entity, EntityRepository } from '../../../shared/infra/mongo/entities/entity-repository.ts';
import type { AcceptanceClock } from '../../../shared/infra/redis/requests/request-eraser.ts';
import type { Clock } from '../../../shared/lifecycle/clock.ts';
import type { AuditTrail } from '../audit-log/audit-trail.ts';
import { principalOf } from '../../http/request-context.ts';
import type { ServeEndpoints } from '../../http/serve-endpoints.ts';
import { pathParam } from '../../contract/path-id.ts';
import { numberMessages, toEntityResource, toMessageResource } from './resource.ts';
import { parseEntity, parseEntityChanges, parseEntityListQuery, parseNewEntity } from './schema.ts';

export interface EntitiesRouteDeps {
  serve: ServeEndpoints;
  entities: EntityRepository;
  acceptanceClock: AcceptanceClock;
  auditTrail: AuditTrail;
  clock: Clock;
}

function notFound(): ServiceError {
  return new ServiceError('not_found', 'There is no entity with this entity_id.');
}

function found<T>(value: T | undefined): T {
  if (value === undefined) throw notFound();
  return value;
}

/** `/entities` (docs/spec/contract.md section 6). */
export function createEntitiesRoute(deps: EntitiesRouteDeps): Router {
  const { serve, entities, acceptanceClock, auditTrail, clock } = deps;

  /** Whose entity a call is about. */
  function placeOf(req: Request, res: Response): [tenantId: string, entityId: string] {
    return [principalOf(res).tenantId, pathParam(req, 'entityId')];
  }

  async function momentOf(res: Response) {
    return { seq: await acceptanceClock.read(principalOf(res).shard), now: clock.now() };
  }

  function answer(res: Response, entity: Entity | undefined): void {
    res.json(toEntityResource(found(entity)));
  }

  return serve({
    createEntity: async (req, res) => {
      const { tenantId } = principalOf(res);
      const { entityId, fields } = parseNewEntity(req.body);
      const now = clock.now();
      if (!(await entities.insert(tenantId, entityId, fields, now))) {
        throw new ServiceError('conflict', 'There is an entity with this entity_id; change it with PUT or PATCH.', {
          param: 'entity_id',
        });
      }
      res.status(201).json(toEntityResource({ entityId, createdAt: now, ...fields }));
    },

    listEntities: async (req, res) => {
      const query = parseEntityListQuery(req.query);
      const rows = await entities.list(principalOf(res).tenantId, query);
      res.json(toListPage(rows, query.limit, toEntityResource));
    },

    putEntity: async (req, res) => {
      const [tenantId, entityId] = placeOf(req, res);
      const outcome = await entities.put(tenantId, entityId, parseEntity(req.body, entityId), clock.now());
      if (outcome === 'created') res.status(201);
      answer(res, await entities.find(tenantId, entityId));
    },

    getEntity: async (req, res) => {
      answer(res, await entities.find(...placeOf(req, res)));
    },

    updateEntity: async (req, res) => {
      const changes = parseEntityChanges(req.body);
      answer(res, await entities.update(...placeOf(req, res), changes));
    },

    deleteEntity: async (req, res) => {
      const [tenantId, entityId] = placeOf(req, res);
      if (!(await entities.remove(tenantId, entityId, await momentOf(res)))) throw notFound();
      await auditTrail.byKey(res, { action: 'entity.deleted', target: entityId });
      res.json({ id: entityId, object: 'entity', deleted: true });
    },

    getEntityHistory: async (req, res) => {
      const query = parseListQuery(req.query);
      const messages = numberMessages(found(await entities.history(...placeOf(req, res))));
      res.json(
        toListPage(
          pageOf(messages, query, ({ id }) => id),
          query.limit,
          toMessageResource,
        ),
      );
    },

    deleteEntityHistory: async (req, res) => {
      const [tenantId, entityId] = placeOf(req, res);
      if (!(await entities.removeHistory(tenantId, entityId, await momentOf(res)))) throw notFound();
      await auditTrail.byKey(res, { action: 'entity.history_deleted', target: entityId });
      res.json({ id: entityId, object: 'entity.history', deleted: true });
    },
  });
}
