package tools

// All returns every tool, in the order in which help and documentation show
// them.
func All() []Tool {
	return []Tool{
		listNodes, getNodeCapacity, listGuests, getGuestConfig, getGuestStatus, listStorage, listSnapshots, listBackups, listGuestContainers, inspectComposeStack, guestHealthSummary, findContainers, checkIP, listAddresses, findFree, clusterHealth, storageHealth, recentTasks, backupCoverage, planNodeEvacuation, pendingUpdates, snapshotAudit, configAudit, capabilities,
	}
}
