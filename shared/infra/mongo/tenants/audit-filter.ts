/** Acts on entities have the entity's id as their target; other acts name it in their details. */
export const ENTITY_ACTION = /^entity\./;

/** Lines of the audit log that name the entity; undefined: any. */
export function actsOn(entityId: string | undefined) {
  return entityId === undefined
    ? { $or: [{ action: ENTITY_ACTION }, { 'details.entity_id': { $exists: true } }] }
    : { $or: [{ action: ENTITY_ACTION, target: entityId }, { 'details.entity_id': entityId }] };
}
