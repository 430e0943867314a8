import type { Connection, Model, Schema } from 'mongoose';

/** Parts of which the schemas of collections are made. */
export const text = { type: String };
export const required = { type: String, required: true };
export const number = { type: Number };
export const count = { type: Number, required: true };
export const flag = { type: Boolean };

/** Options of every schema: a field that a schema does not have is an error. */
export const options = { versionKey: false, strict: 'throw', minimize: false, id: false } as const;

/** Defines a collection. The result gives its model of a connection: the same one, however often it is asked for. */
export function collection<Row>(
  name: string,
  storedAs: string,
  schema: Schema<Row>,
): (connection: Connection) => Model<Row> {
  schema.set('collection', storedAs);
  return (connection) => connection.model<Row>(name, schema);
}
