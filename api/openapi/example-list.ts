/** A page with one item, as an example. */
export function exampleList<Item extends { id: string }>(item: Item, more: object = {}) {
  return { object: 'list', data: [item], has_more: false, first_id: item.id, last_id: item.id, ...more };
}
